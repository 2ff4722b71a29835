#include "mount/fuse/session.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/mem.h"
#include "mount/fuse/closing.h"
#include "mount/fuse/locks.h"
#include "mount/fuse/lost.h"
#include "mount/fuse/operations.h"
#include "mount/vfs/vfs.h"
#include "mount/volfs/volfs.h"

struct session {
    struct session_options options;
    const char *directory;
    pid_t supervisor;
    struct fuse_session *mounted;
    struct link_memory *memory;
    bool is_left;
};

static const struct fuse_lowlevel_ops *table_of(const struct operations *o)
{
    if (o == NULL || o->vfs != NULL)
        return &operations_table;
    return o->volfs != NULL   ? &volume_operations_table
           : o->image != NULL ? &image_operations_table
                              : &plog_operations_table;
}

/* options: NULL of a session that does not mount. */
static struct fuse_session *fuse_new(const char *options, struct operations *o)
{
    const struct fuse_lowlevel_ops *table = table_of(o);
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    struct fuse_session *fuse = NULL;
    if (fuse_opt_add_arg(&args, "dfc-mount") == 0 &&
        (options == NULL ||
         (fuse_opt_add_arg(&args, "-o") == 0 && fuse_opt_add_arg(&args, options) == 0)))
        fuse = fuse_session_new(&args, table, sizeof *table, o);
    fuse_opt_free_args(&args);
    return fuse;
}

/* ---- the supervisor ---- */

struct session *session_mount(const struct session_options *options, const char *directory)
{
    _cleanup_free_ char *how =
        xprintf("fsname=%s,subtype=dfc,%s,default_permissions%s", options->source,
                options->writable ? "rw" : "ro", options->allow_other ? ",allow_other" : "");
    void *memory = mmap(NULL, sizeof(struct link_memory), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    struct session *s = xcalloc(1, sizeof *s);
    s->options = *options;
    s->supervisor = getpid();
    s->directory = directory;
    s->memory = memory;
    s->mounted = fuse_new(how, NULL);
    if (s->mounted != NULL && fuse_session_mount(s->mounted, directory) == 0)
        return s;
    if (s->mounted != NULL)
        fuse_session_destroy(s->mounted);
    munmap(memory, sizeof(struct link_memory));
    free(s);
    return NULL;
}

bool session_has_served(const struct session *s)
{
    return atomic_load(&s->memory->serving);
}

bool session_can_go_on(const struct session *s)
{
    return session_has_served(s) && s->memory->can_resend;
}

void session_leave(struct session *s)
{
    s->is_left = true;
}

/* libfuse forgets a mount only by unmounting it.  So this one is kept until the process ends. */
static struct session *left __attribute__((used));

void session_unmount(struct session *s)
{
    if (s == NULL)
        return;
    if (s->is_left) {
        left = s;
        return;
    }
    fuse_session_unmount(s->mounted);
    fuse_session_destroy(s->mounted);
    munmap(s->memory, sizeof(struct link_memory));
    free(s);
}

/* ---- a process that serves ---- */

/* The kernel's first message, by this thread alone: no other request may overtake it. */
static int begin(struct fuse_session *fuse, struct operations *o, int fd)
{
    struct fuse_buf buf = {.mem = NULL};
    int n = fuse_session_receive_buf(fuse, &buf);
    if (n > 0)
        fuse_session_process_buf(fuse, &buf);
    free(buf.mem);
    if (n <= 0)
        return n < 0 ? n : -EIO;
    return link_began(&o->link, fd);
}

static int loop(struct fuse_session *fuse, unsigned threads)
{
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(config, threads);
    fuse_loop_cfg_set_idle_threads(config, threads < 16 ? threads : 16);
    int rc = fuse_session_loop_mt(fuse, config);
    fuse_loop_cfg_destroy(config);
    return rc < 0 ? rc : 0; /* above 0: the signal that ended it */
}

static int backing_open(void *context, int fd)
{
    const struct operations *o = context;
    return link_backing_open(o->fuse_fd, fd);
}

static void backing_close(void *context, int backing)
{
    const struct operations *o = context;
    link_backing_close(o->fuse_fd, backing);
}

/* Files of the disk cache are read by the kernel itself. */
static void let_pass(struct operations *o, int fd)
{
    const struct backings backings = {o, backing_open, backing_close};
    o->fuse_fd = fd;
    if (o->link.memory->can_pass)
        vfs_let_pass(o->vfs, &backings);
}

static int serve(struct session *s, struct operations *o, void (*ready)(void *context),
                 void *context)
{
    o->attr_ttl_s = (double)s->options.attr_ttl_ms / 1000;
    o->entry_ttl_s = (double)s->options.entry_ttl_ms / 1000;
    o->writable = s->options.writable;
    o->device = closing_device(s->directory);
    o->supervisor = s->supervisor;
    link_init(&o->link, s->memory, s->options.pass);
    struct fuse_session *fuse = fuse_new(NULL, o);
    if (fuse == NULL)
        return -ENOMEM;
    o->fuse = fuse;
    int fd = fcntl(fuse_session_fd(s->mounted), F_DUPFD_CLOEXEC, 0);
    int rc = fd >= 0 ? fuse_session_custom_io(fuse, &link_io, fd) : -errno;
    if (rc == 0 && fuse_set_signal_handlers(fuse) != 0)
        rc = -EIO;
    if (rc == 0)
        rc = begin(fuse, o, fd);
    if (rc == 0 && o->vfs != NULL)
        let_pass(o, fd);
    if (rc == 0 && o->volfs != NULL)
        rc = locks_start(volfs_volume(o->volfs), fuse, &o->locks);
    if (rc == 0 && o->volfs != NULL)
        rc = lost_start(o->volfs, fuse, &o->lost);
    if (rc == 0) {
        ready(context);
        rc = loop(fuse, s->options.threads);
    }
    lost_stop(o->lost);
    locks_stop(o->locks);
    fuse_remove_signal_handlers(fuse);
    fuse_session_destroy(fuse);
    return rc;
}

int session_serve(struct session *s, struct vfs *vfs, void (*ready)(void *context), void *context)
{
    struct operations o = {.vfs = vfs};
    return serve(s, &o, ready, context);
}

int session_serve_volume(struct session *s, struct volfs *volfs, void (*ready)(void *context),
                         void *context)
{
    struct operations o = {.volfs = volfs};
    tickets_init(&o.tickets);
    return serve(s, &o, ready, context);
}

int session_serve_image(struct session *s, struct image *image, void (*ready)(void *context),
                        void *context)
{
    struct operations o = {.image = image};
    return serve(s, &o, ready, context);
}

int session_serve_plogs(struct session *s, struct plogs *plogs, void (*ready)(void *context),
                        void *context)
{
    struct operations o = {.plogs = plogs};
    return serve(s, &o, ready, context);
}
