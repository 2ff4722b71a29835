/* The inside of a struct volume. */
#pragma once

#include <pthread.h>

#include "common/rng.h"
#include "mount/volume/volume.h"

enum { CHANGED_ROWS = 4096 };

struct id_range {
    uint64_t next, end;
};

/* One commit at a time: `number` is that of the last commit of this lane that is known. */
struct lane {
    int64_t number;
    bool busy;
};

struct open_inode {
    uint64_t ino;
    unsigned uses;
    bool kept; /* an OPEN key of this session is there */
};

struct volume {
    struct meta *meta;
    struct volume_env env;
    struct volume_format format;
    uint64_t session;

    pthread_mutex_t lock; /* of all below; never held while the engine is called */
    pthread_cond_t free_lane;
    struct lane *lanes;
    bool fenced;            /* this session is not that of the process before */
    bool over;              /* the session was given up, or the engine lost commits */
    int64_t clock_shift_ns; /* engine's clock less env's */
    int64_t beat_ms;        /* of the last heartbeat, by the engine's clock */
    int64_t patient_ms;     /* until then it ends no session of others */
    struct rng rng;
    _Atomic int64_t trash_days; /* may be changed while it is mounted */
    uint64_t trash_hour;        /* that is there; 0: none is known */
    struct open_inode *open;
    size_t open_count, open_room;
    uint64_t *locked; /* inodes with locks of this client */
    size_t locked_count, locked_room;
    uint64_t lock_calls;            /* that may have made a lock */
    uint64_t changes;               /* commits of this client */
    uint64_t changed[CHANGED_ROWS]; /* the last one of an inode, by its number's remainder */

    pthread_mutex_t ids_lock; /* held while a range is taken; before `lock` */
    struct id_range inodes, slices;
};
