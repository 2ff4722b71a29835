/* How a job over objects goes on this target: what was done, and what could not be.  One object
 * that resists does not keep the others, but fails the job at its end; so many that resist, that
 * something is wrong with more than them, end it early.  So does a quota that is used up.
 * Any thread. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct job_tally;

/* "deleted", for messages; not copied. */
struct job_tally *job_tally_new(const char *done_word);
void job_tally_free(struct job_tally *t);

void job_tally_expect(struct job_tally *t, uint64_t objects);
void job_tally_done(struct job_tally *t, uint64_t bytes);
/* So many at once, which were not expected before. */
void job_tally_add(struct job_tally *t, uint64_t objects, uint64_t bytes);
void job_tally_skipped(struct job_tally *t); /* left as it is, on purpose */
void job_tally_missing(struct job_tally *t); /* there is no such object */
/* The same, with a warning that names it. */
void job_tally_missed(struct job_tally *t, const char *name, const char *why);
/* An earlier run of this target, which does not count any more, has done a part of the work. */
void job_tally_resumed(struct job_tally *t);
/* The work begins anew: what was counted until now counts no more. */
void job_tally_restart(struct job_tally *t);
/* Compared with what others have; or passed: an earlier attempt has done that. */
void job_tally_looked(struct job_tally *t, bool passed);
void job_tally_fail(struct job_tally *t, const char *name, const struct error *err);
/* What the work waits for, to be shown as a warning; NULL: it goes on. */
void job_tally_wait(struct job_tally *t, const struct error *why);

uint64_t job_tally_failed(struct job_tally *t);
bool job_tally_hopeless(struct job_tally *t);
/* The end of the work.  0, or how many objects were not done and why the first one was not. */
int job_tally_end(struct job_tally *t, struct error *err);
/* The end of work whose failures are judged with those of all targets (proxy/jobs/objects_view.h).
 */
void job_tally_close(struct job_tally *t);
/* A field of the kind's own in the status.  Takes `value`. */
void job_tally_detail(struct job_tally *t, const char *field, json_t *value);
/* As proxy/jobs/objects_view.h takes it; and "warnings": the failures. */
json_t *job_tally_status(struct job_tally *t);
