#include "target/jobs/tally_job.h"

#include <stdlib.h>

void tally_job_init(struct tally_job *j, struct target *target, const char *done_word)
{
    *j = (struct tally_job){.target = target, .tally = job_tally_new(done_word)};
    job_stop_init(&j->stop);
}

void tally_job_stop(void *self)
{
    struct tally_job *j = self;
    job_stop_now(&j->stop);
}

json_t *tally_job_status(void *self)
{
    const struct tally_job *j = self;
    return job_tally_status(j->tally);
}

void tally_job_free(void *self)
{
    struct tally_job *j = self;
    job_tally_free(j->tally);
    job_stop_done(&j->stop);
    free(j);
}
