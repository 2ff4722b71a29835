/* The binding to libfuse: each call of the kernel becomes one call of mount/vfs/.  This is the only
 * folder that knows FUSE. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"

struct vfs;

struct session_options {
    const char *source; /* what tables of mounts show: dfc://BUCKET/PREFIX */
    bool allow_other;   /* all users, by the files' modes; else the one who mounts alone */
    uint64_t ttl_ms;    /* how long the kernel keeps names and attributes */
    unsigned threads;   /* calls at once */
};

struct session;

/* Mounts; libfuse says on standard error what is wrong.  NULL: it failed. */
struct session *session_mount(const struct session_options *options, struct vfs *vfs,
                              const char *directory);
/* Serves until the file system is unmounted or SIGTERM, SIGINT or SIGHUP comes; unmounts.  0 or
 * -errno. */
int session_serve(struct session *s);
void session_free(struct session *s); /* NULL is fine */
DEFINE_CLEANUP(struct session, session_free);
