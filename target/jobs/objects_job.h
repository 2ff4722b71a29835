/* What the jobs over named objects (xaction/objects_spec.h) have in common on a target: the parsed
 * request, the count of what was done, the word to stop.  A kind's own state begins with a struct
 * objects_job, so that objects_job_status() serves it as it is. */
#pragma once

#include "cluster/documents/job.h"
#include "target/store/job_names.h"
#include "target/store/job_stop.h"
#include "target/store/job_tally.h"
#include "target/node/target.h"

struct objects_job {
    struct target *target;
    struct job *job;
    struct objects_spec *spec;
    struct objects_plan plan;
    struct job_tally *tally;
    struct job_stop stop;
};

/* done_word: as job_tally_new() takes it.  After an error objects_job_done() is still due. */
int objects_job_init(struct objects_job *o, struct target *target, const struct job *job,
                     const char *done_word, struct error *err);
void objects_job_done(struct objects_job *o);
/* Has this target all that was acknowledged of a bucket?  Of several copies the first owner of a
 * name works on it, and waits for its repair where it has not. */
bool objects_job_has_all(const struct target *t, uint64_t bucket_id);
/* Does this target work on that name, by the map as it is now?  `self`: a kind's own state. */
bool objects_job_is_ours(void *self, const char *name);
/* fn() for all names, in batches, once they have been counted; then the tally's verdict. */
int objects_job_run(struct objects_job *o, job_names_fn *fn, void *ctx, struct error *err);
/* Steps of the kinds that need no more than that. */
void objects_job_stop(void *self);
json_t *objects_job_status(void *self);
