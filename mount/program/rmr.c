/* rmr: trees of a mounted volume are removed by the process that serves it. */
#include "mount/program/program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "mount/fuse/volume_control.h"
#include "mount/program/inside.h"
#include "mount/program/options.h"

static int ask(const struct inside *at, const char *path, bool for_ever)
{
    struct control_remove c = {.for_ever = for_ever};
    memcpy(c.name, at->name, strlen(at->name) + 1);
    int code = inside_ask(at->fd, CONTROL_REMOVE, &c, path);
    if (code != PROGRAM_OK)
        return code;
    if (c.is_moved != 0)
        printf("%s: moved to the trash\n", path);
    else
        printf("%s: %" PRIu64 " removed\n", path, c.removed);
    if (c.error == 0)
        return PROGRAM_OK;
    return program_fail(inside_exit_of(c.error), "'%s': %s, at '%s'; removed before: %" PRIu64,
                        path, strerror(c.error), c.at, c.removed);
}

static int remove_path(const char *path, bool for_ever)
{
    struct inside at;
    struct stat st;
    int code = inside_open(path, &at);
    if (code == PROGRAM_OK && fstatat(at.fd, at.name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        code = program_fail(inside_exit_of(errno), "'%s': %s", path, strerror(errno));
    else if (code == PROGRAM_OK && st.st_dev != at.device)
        code = program_fail(PROGRAM_FAILED, "'%s': a file system is mounted there", path);
    if (code == PROGRAM_OK)
        code = ask(&at, path, for_ever);
    inside_close(&at);
    return code;
}

/* Each of the paths; the first failure is the exit code. */
int program_rmr(const struct options *o)
{
    int code = PROGRAM_OK;
    for (size_t i = 0; i < o->path_count; i++) {
        int one = remove_path(o->paths[i], o->skip_trash);
        code = code != PROGRAM_OK ? code : one;
    }
    return code;
}
