#include "mount/fuse/session.h"

#include <fuse_lowlevel.h>
#include <stdlib.h>

#include "common/mem.h"
#include "mount/fuse/operations.h"

struct session {
    struct operations operations;
    struct fuse_session *fuse;
    unsigned threads;
};

static struct fuse_session *fuse_new(const struct session_options *options, struct operations *o)
{
    _cleanup_free_ char *fsname = xprintf("fsname=%s,subtype=dfc", options->source);
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    struct fuse_session *fuse = NULL;
    if (fuse_opt_add_arg(&args, "dfc-mount") == 0 && fuse_opt_add_arg(&args, "-o") == 0 &&
        fuse_opt_add_arg(&args, fsname) == 0 && fuse_opt_add_arg(&args, "-o") == 0 &&
        fuse_opt_add_arg(&args, options->allow_other ? "ro,default_permissions,allow_other"
                                                     : "ro,default_permissions") == 0)
        fuse = fuse_session_new(&args, &operations_table, sizeof operations_table, o);
    fuse_opt_free_args(&args);
    return fuse;
}

struct session *session_mount(const struct session_options *options, struct vfs *vfs,
                              const char *directory)
{
    struct session *s = xcalloc(1, sizeof *s);
    s->threads = options->threads;
    s->operations = (struct operations){.vfs = vfs, .ttl_s = (double)options->ttl_ms / 1000};
    s->fuse = fuse_new(options, &s->operations);
    if (s->fuse != NULL && fuse_set_signal_handlers(s->fuse) == 0 &&
        fuse_session_mount(s->fuse, directory) == 0)
        return s;
    session_free(s);
    return NULL;
}

int session_serve(struct session *s)
{
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(config, s->threads);
    fuse_loop_cfg_set_idle_threads(config, s->threads < 16 ? s->threads : 16);
    int rc = fuse_session_loop_mt(s->fuse, config);
    fuse_loop_cfg_destroy(config);
    fuse_session_unmount(s->fuse);
    return rc < 0 ? rc : 0; /* above 0: the signal that ended it */
}

void session_free(struct session *s)
{
    if (s == NULL)
        return;
    if (s->fuse != NULL) {
        fuse_remove_signal_handlers(s->fuse);
        fuse_session_destroy(s->fuse);
    }
    free(s);
}
