#include "target/sort/outputs.h"

#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "sort/shard/output_names.h"
#include "target/cold/back.h"
#include "target/cold/cold.h"
#include "target/slices/sweep.h"
#include "target/copies/hidden.h"
#include "target/sort/slices.h"
#include "target/node/quotas.h"
#include "target/node/target.h"

static struct hidden_job hidden_of(const struct sort_outputs *o)
{
    return (struct hidden_job){.target = o->part->target,
                               .bucket_id = o->part->plan->output_bucket_id,
                               .job = o->part->job,
                               .stopped = &o->part->stopped};
}

static bool are_several(const struct sort_outputs *o)
{
    return o->part->output_props.copies > 1;
}

/* --- making ----------------------------------------------------------------------------------- */

unsigned sort_outputs_owner(const struct sort_outputs *o, const char *name)
{
    return sort_plan_owner(o->part->plan, o->part->plan->output_bucket_id, name);
}

/* Does what is made here go to a backend afterwards (back.h)?  It is hidden and pending then, and
 * goes when it is visible. */
static bool are_uploaded(const struct sort_outputs *o)
{
    return o->part->output_props.backend != NULL;
}

/* What is not here may be the backend's alone. */
static int find(const struct sort_outputs *o, const char *name, bool *there, struct error *err)
{
    struct object found;
    struct error why = ERROR_INIT;
    int code =
        object_head(o->part->target->store, o->part->plan->output_bucket_id, name, &found, &why);
    *there = code == 0;
    if (code == E_OBJECT_NOT_FOUND && are_uploaded(o))
        return cold_find(o->part->target->cold, o->part->output_props.backend, name, there, err);
    return code == 0 || code == E_OBJECT_NOT_FOUND ? 0 : error_set(err, code, "%s", why.message);
}

int sort_outputs_check(const struct sort_outputs *o, const char *name, struct error *err)
{
    bool there;
    int code = find(o, name, &there, err);
    return code != 0 || !there ? code
                               : error_set(err, E_OBJECT_EXISTS, "output '%s/%s' exists already",
                                           o->part->spec->output_bucket, name);
}

/* Is what is made here sent on at once: to other owners, as slices, to a backend? */
static bool are_sent_on(const struct sort_outputs *o)
{
    return are_several(o) || o->part->output_props.ec_data > 0 || are_uploaded(o);
}

static struct object_put_spec spec_of(const struct sort_outputs *o, const char *name, uint64_t size)
{
    return (struct object_put_spec){
        .bucket_id = o->part->plan->output_bucket_id,
        .name = name,
        .size = size != SORT_SIZE_UNKNOWN ? size : OBJECT_SIZE_UNKNOWN,
        .durability = o->part->output_props.durability,
        .checksum = o->part->output_props.checksum,
        .content_type = output_content_type(o->part->spec, name),
        .job_id = o->part->job->id,
        .pending = are_uploaded(o),
        .unread = !are_sent_on(o),
    };
}

static int take_quota(const struct sort_outputs *o, const struct object_put_spec *spec,
                      struct error *err)
{
    const struct target *t = o->part->target;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, spec->bucket_id);
    return b != NULL ? quota_take(t->quotas, b, spec->name, spec->size, err) : 0;
}

int sort_outputs_begin(const struct sort_outputs *o, const char *name, uint64_t size,
                       struct sort_output **out, struct error *err)
{
    unsigned owner = sort_outputs_owner(o, name);
    if (owner != o->part->self)
        return error_set(err, E_WRONG_OWNER,
                         "output '%s' was ordered from target '%s', its owner "
                         "is '%s'",
                         name, o->part->target->id, o->part->plan->ids[owner]);
    const struct object_put_spec spec = spec_of(o, name, size);
    int code = take_quota(o, &spec, err);
    if (code != 0)
        return code;
    return object_put_begin(o->part->target->store, &spec, (struct object_put **)out, err);
}

int sort_outputs_finish(const struct sort_outputs *o, struct sort_output *out, struct error *err)
{
    struct object_put *put = (struct object_put *)out;
    const struct hidden_job hidden = hidden_of(o);
    struct sort_slices slices;
    _cleanup_free_ char *name = xstrdup(object_put_attr(put)->name);
    const struct object_put_spec spec = spec_of(o, name, SORT_SIZE_UNKNOWN);
    int code = sort_slices_make(o->part, &spec, &put, &slices, err);
    if (code != 0)
        object_put_abort(put);
    else
        code = object_put_commit_wait(put, err);
    return code != 0 || !are_several(o) ? code : hidden_send(&hidden, name, NULL, err);
}

/* --- a further attempt ------------------------------------------------------------------------ */

/* What stands from an earlier life of this target was sent to nobody knows which runs. */
void sort_outputs_again(struct sort_outputs *o)
{
    _cleanup_state_ const struct cluster_state *s = state_current(o->part->target->state);
    bool again = o->boots == NULL && o->part->job->attempt > 0;
    if (o->boots == NULL) {
        o->boots = xcalloc(o->part->plan->count, sizeof *o->boots);
        o->restarted = xcalloc(o->part->plan->count, sizeof *o->restarted);
    }
    for (size_t i = 0; i < o->part->plan->count; i++) {
        const struct node *n = smap_node(&s->smap, o->part->plan->ids[i]);
        if (n == NULL || (o->boots[i] != NULL && strcmp(o->boots[i], n->boot) == 0))
            continue;
        o->restarted[i] = o->boots[i] != NULL || o->restarted[i] || again;
        free(o->boots[i]);
        o->boots[i] = xstrdup(n->boot);
    }
}

/* Of whole ones resume.h knows it, and sort/built.h. */
bool sort_outputs_stand(const struct sort_outputs *o, const char *name)
{
    return o->part->output_props.ec_data == 0 || sort_slices_stand(o->part, name);
}

struct pruning {
    struct sort_outputs *outputs;
    bool (*wanted)(void *arg, const char *name);
    void *arg;
};

static bool has_restarted(void *ctx, const struct node *n)
{
    const struct sort_outputs *o = ctx;
    int number = sort_plan_number(o->part->plan, n->id);
    return number < 0 || o->restarted[number];
}

/* What others have made is theirs to keep or to take back. */
static int prune_output(void *ctx, const char *name, struct error *err)
{
    const struct pruning *p = ctx;
    struct sort_outputs *o = p->outputs;
    const struct hidden_job hidden = hidden_of(o);
    const struct hidden_choice restarted = {.fn = has_restarted, .ctx = o};
    if (sort_outputs_owner(o, name) != o->part->self)
        return 0;
    if (p->wanted(p->arg, name)) /* who has restarted may have lost a disk */
        return are_several(o) ? hidden_send(&hidden, name, &restarted, err) : 0;
    int code = are_several(o) ? hidden_drop(&hidden, name, err) : 0;
    return code != 0 ? code
                     : object_discard(o->part->target->store, hidden.bucket_id, name,
                                      o->part->job->id, err);
}

int sort_outputs_prune(struct sort_outputs *o, bool (*wanted)(void *arg, const char *name),
                       void *arg, struct error *err)
{
    struct pruning p = {.outputs = o, .wanted = wanted, .arg = arg};
    int code = object_each_marked(o->part->target->store, o->part->plan->output_bucket_id,
                                  o->part->job->id, prune_output, &p, err);
    for (size_t i = 0; i < o->part->plan->count && code == 0; i++)
        o->restarted[i] = false;
    return code;
}

/* --- the end ---------------------------------------------------------------------------------- */

int sort_outputs_settle(const struct sort_outputs *o, struct error *err)
{
    if (o->part->spec->dry_run || o->part->output_props.durability == DURABILITY_SYNC)
        return 0;
    return object_store_sync(o->part->target->store, err);
}

typedef int end_fn(const struct sort_outputs *o, const char *name, struct error *err);

static int show(const struct sort_outputs *o, const char *name, struct error *err)
{
    uint64_t bucket_id = o->part->plan->output_bucket_id;
    int code = object_unmark(o->part->target->store, bucket_id, name, o->part->job->id, err);
    if (code == 0 && are_uploaded(o))
        back_note(o->part->target->back, bucket_id, name, clock_wall_ms());
    return code;
}

static int forsake(const struct sort_outputs *o, const char *name, struct error *err)
{
    return object_forsake(o->part->target->store, o->part->plan->output_bucket_id, name,
                          o->part->job->id, err);
}

static int take_back(const struct sort_outputs *o, const char *name, struct error *err)
{
    return object_discard(o->part->target->store, o->part->plan->output_bucket_id, name,
                          o->part->job->id, err);
}

/* What is done with each output; one that resists does not keep the others. */
struct ending {
    const struct sort_outputs *outputs;
    end_fn *fn;
    struct error first;
};

static int end_output(void *ctx, const char *name, struct error *err)
{
    struct ending *e = ctx;
    const struct sort_outputs *o = e->outputs;
    struct error why = ERROR_INIT;
    (void)err;
    int code = e->fn(o, name, &why);
    if (code != 0 && e->first.code == 0)
        e->first = why;
    return 0;
}

/* The job's directory goes last: while it stands, the work is not done.  Copies that others are
 * sending are in, or refused, before anything is looked for. */
static int end_all(const struct sort_outputs *o, end_fn *fn, struct error *err)
{
    struct object_store *store = o->part->target->store;
    struct ending e = {.outputs = o, .fn = fn, .first = ERROR_INIT};
    object_store_settle(store);
    int code = object_each_marked(store, o->part->plan->output_bucket_id, o->part->job->id,
                                  end_output, &e, err);
    if (code == 0 && e.first.code != 0)
        code = error_set(err, e.first.code, "%s", e.first.message);
    if (code == 0)
        code = object_store_sync(store, err);
    return code != 0 ? code : object_remove_job_files(store, o->part->job->id, err);
}

int sort_outputs_commit(const struct sort_outputs *o, struct error *err)
{
    return end_all(o, show, err);
}

/* Was it left out, or may it have been (nobody knows the job any more)?  Then others have the
 * outputs, or tombstones of their own, and this target lags: a repair brings it what it lacks. */
static bool may_be_left_out(const struct sort_outputs *o)
{
    _cleanup_state_ const struct cluster_state *s = state_current(o->part->target->state);
    const struct job *job = jobs_find(&s->jobs, o->part->job->id);
    return are_several(o) && (job == NULL || job_leaves_out(job, o->part->target->id));
}

/* Slices of others' outputs are here, too.  The proxy's clock may go before this one's. */
static void sweep_slices(const struct sort_outputs *o)
{
    if (o->part->output_props.ec_data > 0)
        ec_sweep_soon(o->part->target->ec,
                      o->part->job->created_ms - (int64_t)o->part->target->params.slices_grace);
}

int sort_outputs_undo(const struct sort_outputs *o, struct error *err)
{
    int code = end_all(o, may_be_left_out(o) ? forsake : take_back, err);
    sweep_slices(o);
    return code;
}

void sort_outputs_done(struct sort_outputs *o)
{
    for (size_t i = 0; o->boots != NULL && i < o->part->plan->count; i++)
        free(o->boots[i]);
    free(o->boots);
    free(o->restarted);
}
