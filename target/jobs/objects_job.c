#include "target/jobs/objects_job.h"

#include <string.h>

#include "cluster/documents/layout.h"
#include "target/node/target.h"

enum { WAIT_MS = 200 };

int objects_job_init(struct objects_job *o, struct target *target, const struct job *job,
                     const char *done_word, struct error *err)
{
    *o = (struct objects_job){
        .target = target, .job = job_ref(job), .tally = job_tally_new(done_word)};
    job_stop_init(&o->stop);
    if (job->state != JOB_QUEUED)
        job_tally_resumed(o->tally);
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

bool objects_job_has_all(const struct target *t, uint64_t bucket_id)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    const struct node *self = smap_node(&s->smap, t->id);
    return b == NULL || !bucket_has_copies(b) ||
           (self != NULL && self->state == NODE_ACTIVE && self->lag == LAG_NONE &&
            strcmp(self->boot, t->boot) == 0 && layout_is_settled(&s->smap));
}

static int wait_for_copies(struct objects_job *o, struct error *err)
{
    struct error why = ERROR_INIT;
    error_set(&why, E_NOT_READY, "target '%s' waits for its repair", o->target->id);
    while (!objects_job_has_all(o->target, o->plan.input_bucket_id)) {
        job_tally_wait(o->tally, &why);
        if (!job_stop_pause(&o->stop, WAIT_MS))
            return error_set(err, E_ABORTED, "job '%s' was stopped", o->job->id);
        job_tally_wait(o->tally, NULL);
    }
    return 0;
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
    int code = wait_for_copies(o, err);
    if (code == 0)
        code = job_names_count(&names, &total, err);
    if (code != 0)
        return code;
    job_tally_expect(o->tally, total);
    code = job_names_each(&names, fn, ctx, err);
    return code != 0 ? code : job_tally_end(o->tally, err);
}

bool objects_job_is_ours(void *self, const char *name)
{
    const struct objects_job *o = self;
    const struct job_names names = {.self = o->target->id, .bucket_id = o->plan.input_bucket_id};
    _cleanup_state_ const struct cluster_state *s = state_current(o->target->state);
    return job_names_is_ours(&names, s, name);
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
