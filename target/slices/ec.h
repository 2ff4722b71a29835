/* Objects in slices (docs/design/erasure-coding.md): what their writes, reads and cleaning up share
 * on a target.
 *
 *   ec_manifest  what the name holds                ec_plan    which target has what: pure
 *   ec_slices    slices, as targets keep them       ec_find    those of other targets
 *   ec_write     PUT                                ec_read    GET
 *   ec_store     the same of a file that is here    sweep_timer    when the sweep looks: pure
 *   ec_source    slices of others, read together    ec_sweep   slices that nobody knows go
 *   ec_repair    missing ones are made anew, and brought to their places
 *   ec_mend      the same, of names that somebody has found
 */
#pragma once

#include <pthread.h>

#include "common/error.h"
#include "common/rng.h"
#include "ec/code.h"
#include "target/store/job_stop.h"

struct slice_repair;
struct pool;
struct target;

struct ec {
    struct target *target;
    struct pool *readers; /* wait for slices, and for clients that take the bytes */
    struct job_stop stop;
    struct slice_repair *repair;
    /* Tells it: slice_repair_want().  Does not wait. */
    void (*damaged)(struct target *t, uint64_t bucket_id, const char *name, ec_mask which);
    pthread_mutex_t mending;  /* one name at a time, so that no slice is made twice */
    pthread_mutex_t dropping; /* one slice that another has, too; and what that was decided by */
    pthread_t sweeper;
    bool sweeps;
    pthread_mutex_t lock; /* of what follows */
    struct rng rng;
    int64_t sweep_since_ms; /* ec_sweep_soon() */
};

extern const struct slices_hooks ec_hooks; /* of every target */

int ec_new(struct target *t, struct ec **out, struct error *err);
void ec_stop(struct ec *e); /* NULL is fine */
void ec_free(struct ec *e); /* NULL is fine */

/* Unlike any other; not 0. */
uint64_t ec_new_tag(struct ec *e);
