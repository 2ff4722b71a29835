#include "target/jobs/objects_walk.h"

#include <string.h>

#include "cluster/documents/layout.h"
#include "io/pool.h"
#include "target/cold/names.h"

enum { WAIT_MS = 200 };

bool objects_walk_has_all(const struct target *t, uint64_t bucket_id)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    const struct node *self = smap_node(&s->smap, t->id);
    return b == NULL || !bucket_has_copies(b) ||
           (self != NULL && self->state == NODE_ACTIVE && self->lag == LAG_NONE &&
            strcmp(self->boot, t->boot) == 0 && layout_is_settled(&s->smap));
}

static int wait_for_copies(struct job_base *j, struct error *err)
{
    struct error why = ERROR_INIT;
    error_set(&why, E_NOT_READY, "target '%s' waits for its repair", j->target->id);
    while (!objects_walk_has_all(j->target, j->plan.input_bucket_id)) {
        job_tally_wait(j->tally, &why);
        if (!job_stop_pause(&j->stop, WAIT_MS))
            return job_base_check(j, err);
        job_tally_wait(j->tally, NULL);
    }
    return 0;
}

static struct job_names names_of(struct job_base *j)
{
    return (struct job_names){.store = j->target->store,
                              .state = j->target->state,
                              .self = j->target->id,
                              .spec = j->spec,
                              .bucket_id = j->plan.input_bucket_id,
                              .job_id = j->job->id,
                              .stop = &j->stop.wanted};
}

int objects_walk(struct job_base *j, job_names_fn *fn, void *ctx, struct error *err)
{
    const struct job_names names = names_of(j);
    uint64_t total;
    int code = wait_for_copies(j, err);
    if (code == 0)
        code = job_names_count(&names, &total, err);
    if (code != 0)
        return code;
    job_tally_expect(j->tally, total);
    code = job_names_each(&names, fn, ctx, err);
    return code != 0 ? code : job_tally_end(j->tally, err);
}

/* --- what a backend lists --------------------------------------------------------------------- */

struct listed {
    struct job_base *job;
    job_names_fn *fn;
    void *ctx;
};

/* By the map as it is now. */
static bool is_ours(void *ctx, const char *name)
{
    const struct listed *l = ctx;
    const struct job_names names = names_of(l->job);
    _cleanup_state_ const struct cluster_state *s = state_current(names.state);
    return job_names_is_ours(&names, s, name);
}

static int listed_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    const struct listed *l = ctx;
    job_tally_expect(l->job->tally, n);
    return l->fn(l->ctx, names, n, err);
}

int objects_walk_listed(struct job_base *j, bool backend_only, job_names_fn *fn, void *ctx,
                        struct error *err)
{
    struct listed l = {.job = j, .fn = fn, .ctx = ctx};
    const struct cold_names names = {.target = j->target,
                                     .bucket_id = j->plan.input_bucket_id,
                                     .prefix = j->spec->prefix,
                                     .skips_internal = objects_spec_skips_internal(j->spec),
                                     .job = j->job,
                                     .backend_only = backend_only,
                                     .is_ours = is_ours,
                                     .ctx = &l,
                                     .stop = &j->stop.wanted};
    int code = cold_names_each(&names, listed_batch, &l, err);
    return code != 0 ? code : job_tally_end(j->tally, err);
}

/* --- a batch ---------------------------------------------------------------------------------- */

struct batch {
    struct job_base *job;
    const char *const *names;
    void (*one)(void *ctx, const char *name);
    void *ctx;
};

static int batch_nth(void *ctx, size_t i, struct error *err)
{
    const struct batch *b = ctx;
    int code = job_base_check(b->job, err);
    if (code != 0)
        return code;
    b->one(b->ctx, b->names[i]);
    return job_tally_hopeless(b->job->tally) ? job_tally_end(b->job->tally, err) : 0;
}

int objects_walk_batch(struct job_base *j, unsigned width, const char *const *names, size_t n,
                       void (*one)(void *ctx, const char *name), void *ctx, struct error *err)
{
    struct batch b = {.job = j, .names = names, .one = one, .ctx = ctx};
    return parallel_for(j->job->kind, width, n, batch_nth, &b, err);
}
