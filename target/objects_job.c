#include "target/objects_job.h"

int objects_job_init(struct objects_job *o, struct target *target, const struct job *job,
                     const char *done_word, struct error *err)
{
    *o = (struct objects_job){
        .target = target, .job = job_ref(job), .tally = job_tally_new(done_word)};
    job_stop_init(&o->stop);
    int code = objects_spec_parse(job->kind, job->spec, &o->spec, err);
    if (code == 0)
        code = objects_plan_parse(job->plan, &o->plan, err);
    return code == 0 ? 0 : error_wrap(err, "job '%s'", job->id);
}

void objects_job_done(struct objects_job *o)
{
    job_tally_free(o->tally);
    objects_spec_free(o->spec);
    job_unref(o->job);
    job_stop_done(&o->stop);
}

int objects_job_run(struct objects_job *o, job_names_fn *fn, void *ctx, struct error *err)
{
    const struct job_names names = {.store = o->target->store,
                                    .state = o->target->state,
                                    .self = o->target->id,
                                    .spec = o->spec,
                                    .bucket_id = o->plan.input_bucket_id,
                                    .job_id = o->job->id,
                                    .stop = &o->stop.wanted};
    uint64_t total;
    int code = job_names_count(&names, &total, err);
    if (code != 0)
        return code;
    job_tally_expect(o->tally, total);
    code = job_names_each(&names, fn, ctx, err);
    return code != 0 ? code : job_tally_end(o->tally, err);
}

void objects_job_stop(void *self)
{
    struct objects_job *o = self;
    job_stop_now(&o->stop);
}

json_t *objects_job_status(void *self)
{
    const struct objects_job *o = self;
    return job_tally_status(o->tally);
}
