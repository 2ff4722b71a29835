/* The objects that a job over named objects (xaction/objects_spec.h) means on this target: batch
 * after batch, and the objects of a batch beside each other. */
#pragma once

#include "target/jobs/job_base.h"
#include "target/jobs/job_names.h"

/* Does this target have all that was acknowledged of a bucket?  Of several copies the first owner
 * of a name works on it, and waits for its repair where it has not. */
bool objects_walk_has_all(const struct target *t, uint64_t bucket_id);

/* fn() for all names, in batches, once they have been counted; then the tally's verdict. */
int objects_walk(struct job_base *j, job_names_fn *fn, void *ctx, struct error *err);
/* The same for a prefix of a bucket with a backend: also what only the backend lists, or that
 * alone.  Each target reads all names and takes its own; how many there are is known at the end. */
int objects_walk_listed(struct job_base *j, bool backend_only, job_names_fn *fn, void *ctx,
                        struct error *err);
/* one() for the names of a batch, at most `width` at a time.  Ends early where the job shall end,
 * or too many have failed. */
int objects_walk_batch(struct job_base *j, unsigned width, const char *const *names, size_t n,
                       void (*one)(void *ctx, const char *name), void *ctx, struct error *err);
