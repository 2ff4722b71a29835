#include "target/jobs/job_base.h"

#include "common/mem.h"

int job_base_check(const struct job_base *j, struct error *err)
{
    return j->stop.wanted ? error_set(err, E_ABORTED, "job '%s' was stopped", j->job->id) : 0;
}

bool job_base_again(struct job_base *j, int code, const struct error *why, unsigned failures)
{
    if (code == 0 || j->stop.wanted || !object_copy_may_pass(code))
        return false;
    job_tally_wait(j->tally, why);
    bool goes_on = job_stop_back_off(&j->stop, failures);
    job_tally_wait(j->tally, NULL);
    return goes_on;
}

static int parse_objects(struct job_base *j, struct error *err)
{
    if (j->job->state != JOB_QUEUED)
        job_tally_resumed(j->tally);
    int code = objects_spec_parse(j->job->kind, j->job->spec, &j->spec, err);
    return code == 0 ? objects_plan_parse(j->job->plan, &j->plan, err) : code;
}

int job_base_open(const struct xaction_ops *kind, void *host, const struct job *job, void **self,
                  struct error *err)
{
    const struct job_work *work = kind->work;
    struct job_base *j = xcalloc(1, work->size);
    j->target = host;
    j->job = job_ref(job);
    j->work = work;
    j->tally = work->done_word != NULL ? job_tally_new(work->done_word) : NULL;
    j->copier = work->sends ? object_copier_new(host) : NULL;
    job_stop_init(&j->stop);
    int code = work->over_objects ? parse_objects(j, err) : 0;
    if (code == 0 && work->begin != NULL)
        code = work->begin(j, err);
    if (code == 0) {
        *self = j;
        return 0;
    }
    error_wrap(err, "job '%s'", job->id);
    job_base_free(j);
    return code;
}

int job_base_run(void *self, struct error *err)
{
    const struct job_base *j = self;
    return j->work->run(self, err);
}

void job_base_stop(void *self)
{
    struct job_base *j = self;
    job_stop_now(&j->stop);
    if (j->copier != NULL)
        object_copier_stop(j->copier);
}

json_t *job_base_status(void *self)
{
    const struct job_base *j = self;
    return j->work->status != NULL ? j->work->status(self) : job_tally_status(j->tally);
}

void job_base_free(void *self)
{
    struct job_base *j = self;
    if (j->work->end != NULL)
        j->work->end(self);
    object_copier_free(j->copier);
    objects_spec_free(j->spec);
    job_tally_free(j->tally);
    job_unref(j->job);
    job_stop_done(&j->stop);
    free(j);
}
