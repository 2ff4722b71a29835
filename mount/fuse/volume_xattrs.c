#include "mount/fuse/volume_xattrs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/mem.h"
#include "mount/fuse/operations.h"
#include "mount/volfs/volfs.h"

/* Of the root: the process that serves, its supervisor, and metrics. */
static const char pid_name[] = "user.dfc.pid", supervisor_name[] = "user.dfc.supervisor",
                  stats_name[] = "user.dfc.stats";

static void fail(fuse_req_t req, int rc)
{
    fuse_reply_err(req, -rc);
}

static void reply_process(fuse_req_t req, pid_t process, size_t room)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)process);
    operations_reply_value(req, 0, pid, strlen(pid), room);
}

/* False: it is none of the root's own. */
static bool reply_own(fuse_req_t req, const char *name, size_t room)
{
    const struct operations *o = fuse_req_userdata(req);
    if (strcmp(name, pid_name) == 0) {
        reply_process(req, getpid(), room);
    } else if (strcmp(name, supervisor_name) == 0 && o->supervisor == getppid()) {
        reply_process(req, o->supervisor, room);
    } else if (strcmp(name, stats_name) == 0) {
        _cleanup_free_ char *text = volfs_stats(o->volfs);
        operations_reply_value(req, 0, text, strlen(text), room);
    } else {
        return false;
    }
    return true;
}

void xattrs_get(fuse_req_t req, fuse_ino_t node, const char *name, size_t room)
{
    const uint8_t *value;
    size_t size;
    if (node == FUSE_ROOT_ID && reply_own(req, name, room))
        return;
    struct arena *arena = arena_new(1024);
    int rc = volume_getxattr(volfs_volume(operations_volfs(req)), node, name, arena, &value, &size);
    operations_reply_value(req, rc, value, size, room);
    arena_free(arena);
}

void xattrs_list(fuse_req_t req, fuse_ino_t node, size_t room)
{
    _cleanup_buf_ struct buf names = BUF_INIT;
    int rc = volume_listxattr(volfs_volume(operations_volfs(req)), node,
                              fuse_req_ctx(req)->uid == 0, &names);
    operations_reply_value(req, rc, names.data, names.len, room);
}

void xattrs_set(fuse_req_t req, fuse_ino_t node, const char *name, const char *value, size_t size,
                int flags)
{
    fail(req, operations_call_begin(req) ? 0
                                         : volume_setxattr(volfs_volume(operations_volfs(req)),
                                                           node, name, value, size, flags));
    volume_call_end();
}

void xattrs_remove(fuse_req_t req, fuse_ino_t node, const char *name)
{
    fail(req, operations_call_begin(req)
                  ? 0
                  : volume_removexattr(volfs_volume(operations_volfs(req)), node, name));
    volume_call_end();
}
