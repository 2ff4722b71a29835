/* The binding to libfuse: each call of the kernel becomes one call of mount/vfs/, of a
 * volume, of a dataset image, or of a bucket of plogs.  This is the only folder that knows FUSE.
 *
 * The process that mounts holds the link to the kernel; processes that it starts serve, one after
 * another.
 *
 *     session_mount       the supervisor
 *     session_serve       a process that it has started
 *     session_unmount     the supervisor */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"

struct image;
struct plogs;
struct vfs;
struct volfs;

struct session_options {
    const char *source; /* what tables of mounts show: dfc://BUCKET/PREFIX */
    bool allow_other;   /* all users, by the files' modes; else the one who mounts alone */
    bool writable;
    bool pass;             /* of a bucket: the kernel reads cached files itself, if it can */
    uint64_t attr_ttl_ms;  /* how long the kernel keeps attributes */
    uint64_t entry_ttl_ms; /* and names */
    unsigned threads;      /* calls at once */
};

struct session;

/* Mounts; libfuse says on standard error what is wrong.  NULL: it failed.  All is borrowed. */
struct session *session_mount(const struct session_options *options, const char *directory);
/* Serves until the file system is unmounted or SIGTERM, SIGINT or SIGHUP comes: 0 or -errno.  ready
 * is called once before that. */
int session_serve(struct session *s, struct vfs *vfs, void (*ready)(void *context), void *context);
int session_serve_volume(struct session *s, struct volfs *volfs, void (*ready)(void *context),
                         void *context);
int session_serve_image(struct session *s, struct image *image, void (*ready)(void *context),
                        void *context);
int session_serve_plogs(struct session *s, struct plogs *plogs, void (*ready)(void *context),
                        void *context);
/* Has a process of this session served?  And can another one take over? */
bool session_has_served(const struct session *s);
bool session_can_go_on(const struct session *s);
/* session_unmount() will leave the mount, dead: programs get an error, and not what is below. */
void session_leave(struct session *s);
void session_unmount(struct session *s); /* fine where it is unmounted; NULL, too */
DEFINE_CLEANUP(struct session, session_unmount);
