/* Threads that reply to the commands of a ring.
 *
 *     uio: a read says that there are commands; a write says that there are replies */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "mount/tcmu/scsi.h"

struct server;

struct server_options {
    int uio;   /* the device; borrowed */
    void *map; /* its memory, the same */
    size_t bytes;
    struct scsi_disk disk;
    unsigned threads;
    /* Contents of the disk, in any thread: 0 or -errno. */
    int (*read)(void *context, uint64_t offset, size_t size, void *to);
    void *context;
};

/* Commands that an earlier server has left are replied to, too.  The caller has blocked signals. */
int server_start(const struct server_options *options, struct server **s, struct error *err);
/* A descriptor that becomes readable if the server can do no more, and why. */
int server_failed_fd(const struct server *s);
int server_failure(struct server *s, struct error *err);
/* Ends when the reads under way have ended.  Commands may be left in the ring.  NULL is fine. */
void server_stop(struct server *s);
