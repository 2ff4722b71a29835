/* The room of the cluster, as df(1) shows it.
 *
 * The cluster is asked at most once a minute, by one call at a time and without the lock.  Others
 * get what was known before: zeros if nothing was.  A failure is remembered for some seconds.  The
 * last known room is given meanwhile, or the error if no room is known.  Any thread may call. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "mount/bucket/tree.h"

#define ROOM_KEEP_MS 60000
#define ROOM_FAILED_MS 5000

struct room {
    int (*ask)(void *context, struct tree_room *room); /* the cluster; 0 or -errno */
    void *context;
    pthread_mutex_t lock; /* of what follows */
    bool is_asked;        /* a call is at it */
    bool is_known;
    int error;        /* of the last ask, while no room is known */
    uint64_t next_ms; /* the cluster is not asked before */
    struct tree_room last;
};

void room_init(struct room *r, int (*ask)(void *context, struct tree_room *room), void *context);
void room_done(struct room *r);
/* 0 or -errno.  EINTR: the caller's wait was cut, which is no failure of the cluster. */
int room_get(struct room *r, struct tree_room *out);
