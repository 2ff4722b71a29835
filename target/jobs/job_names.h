/* The objects that a job (xaction/objects_spec.h) means and that are this target's to work on: of
 * a list or template those whose owner it is by the map in force, of a prefix those that it holds;
 * of a bucket with several copies those of which it is the first owner.
 * In bounded batches; what appears behind the place that was reached is found, too. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "cluster/documents/state.h"
#include "target/store/object.h"
#include "xaction/objects_spec.h"

enum { JOB_NAMES_BATCH = 1000 };

struct job_names {
    struct object_store *store;
    struct state_holder *state;
    const char *self; /* this target's id */
    const struct objects_spec *spec;
    uint64_t bucket_id;
    const char *job_id;      /* for messages */
    const atomic_bool *stop; /* ends it with E_ABORTED */
};

/* Is this target the owner of the name? */
bool job_names_is_ours(const struct job_names *n, const struct cluster_state *s, const char *name);

typedef int job_names_fn(void *ctx, const char *const *names, size_t count, struct error *err);

/* fn() for batch after batch of at most JOB_NAMES_BATCH names, until it fails. */
int job_names_each(const struct job_names *n, job_names_fn *fn, void *ctx, struct error *err);
int job_names_count(const struct job_names *n, uint64_t *count, struct error *err);
