/* What jobs that walk the target and count what they do have in common.  A kind's own state begins
 * with a struct tally_job, so that these serve as its steps; one that holds more has a free() of
 * its own, which ends with tally_job_free(). */
#pragma once

#include "target/store/job_stop.h"
#include "target/store/job_tally.h"

struct target;

struct tally_job {
    struct target *target;
    struct job_tally *tally;
    struct job_stop stop;
};

/* done_word: as job_tally_new() takes it. */
void tally_job_init(struct tally_job *j, struct target *target, const char *done_word);
void tally_job_stop(void *self);
json_t *tally_job_status(void *self);
void tally_job_free(void *self);
