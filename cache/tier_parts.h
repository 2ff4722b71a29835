/* The inside of a struct tier, for its sources. */
#pragma once

#include <pthread.h>

#include "cache/health.h"
#include "cache/policy.h"
#include "cache/tier.h"
#include "common/metrics.h"

/* A piece some bytes of which were handed over. */
struct partial {
    struct partial *older, *newer; /* by use */
    struct piece_id id;
    size_t size;
    uint64_t used_ms;
    unsigned fills;              /* begun and not yet written: it stays */
    struct files_writer *writer; /* of the filler alone; NULL: nothing was written yet */
    size_t promised;             /* as well: room that the rest of it will take */
    bool failed;                 /* its further bytes are dropped */
};

struct fill {
    struct tier_fill is; /* first */
    struct fill *next;
    struct partial *partial;
    struct cache_entity entity; /* owns its name */
    struct piece piece;
    size_t offset;
};

/* An entity whose pieces are joined, or whose whole is compared with its sums. */
struct join {
    struct join *next;
    struct cache_entity entity; /* owns its texts */
    struct piece whole;
    bool suspect; /* under the lock: the whole could not be read */
    bool begun;
    bool holds;              /* the pieces */
    struct files_join *file; /* NULL: the whole is there */
    uint64_t index;          /* the piece that comes next */
    uint64_t promised;       /* room that the rest of it will take */
};

struct tier_metrics {
    metric_t *read, *written, *evicted, *damaged;
    metric_t *refused, *no_memory, *no_room, *failed; /* bytes that were dropped */
    metric_t *used, *pieces, *passed_by, *state;
    metric_t *joined, *joins;
};

struct tier {
    struct tier_options options;
    struct files *files;
    char *directory;
    struct tier_metrics metrics;
    pthread_t filler;
    bool has_filler;

    uint64_t promised; /* of all partials and the join; of the filler alone */
    uint64_t joining;  /* bytes that the join will have; of the filler alone */

    pthread_mutex_t lock; /* guards all below; no file is touched under it */
    pthread_cond_t work;  /* for the filler */
    pthread_cond_t news;  /* memory was freed, the scan or a fill has ended */
    struct policy *policy;
    struct health health;
    struct pace pace;
    struct fill *first, **last;
    struct partial *oldest, *newest;
    uint64_t partial_bytes;
    uint64_t memory;        /* bytes of fills */
    uint64_t handed, ended; /* fills in the queue, of all times */
    struct join *joins;     /* the first is the filler's; others may add behind it */
    unsigned join_count;
    bool scanned;
    bool stop;
};

/* Tells whether an operation of the disk failed, and logs what follows. */
void tier_note(struct tier *t, const char *what, int rc);
bool tier_is_good(struct tier *t);
/* As tier_find_within(), also of a suspect one. */
int tier_find_whole(struct tier *t, const struct piece *p, struct files_piece *found);
/* 0 or -errno; then it still counts, and leaves later. */
int tier_remove(struct tier *t, const struct piece *p);
/* A read of the whole failed: it is compared, and nobody reads it until then. */
void tier_suspect(struct tier *t, const struct cache_entity *e);
bool tier_is_suspect(struct tier *t, const struct piece_id *whole);
void tier_show(struct tier *t); /* its gauges; under the lock */

void *tier_filler(void *tier); /* the thread */
/* Of the filler. */
bool tier_has_room(struct tier *t, size_t more);
int tier_make_room(struct tier *t, size_t more); /* 0 or -errno */
void tier_join_step(struct tier *t);             /* one piece more of the first join */
void tier_joins_drop(struct tier *t);            /* all */
