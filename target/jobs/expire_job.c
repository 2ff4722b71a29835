/* The job `expire` on a target: deletes the objects that lifecycle rules expire (node/expiry.h), of
 * names that this target leads.
 *
 *   each bucket with such rules ─▶ its names here, in parts ─▶ those that the index lets expire,
 *     and their tags
 *     ─▶ delete_queue ─▶ under the name's lock: the rules and the object as they are now ─▶ deleted
 *
 * {"bucket": name}: of that bucket alone.
 *
 * A write between the walk and the deletion stays, and so does everything once the rules are
 * changed.  While objects are moved or brought to this target it waits: what another target has of
 * a name may be newer.  Doing it again finds what was deleted gone. */
#include <string.h>

#include "cluster/documents/layout.h"
#include "cluster/placement/owners.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/metrics.h"
#include "target/disk/index_merge.h"
#include "target/jobs/delete_queue.h"
#include "target/node/expiry.h"

enum { WAIT_MS = 200 };

struct expire_job {
    struct job_base base;
    const char *bucket; /* of the job's document; NULL: all */
};

/* One bucket. */
struct expiring {
    struct expire_job *job;
    uint64_t bucket_id;
    struct expiry *rules;
    struct delete_queue queue;
    /* While a part of its names is read. */
    const struct cluster_state *state;
    const struct bucket *bucket;
    struct s3_lifecycle_now now;
};

static int begin(void *self, struct error *err)
{
    struct expire_job *j = self;
    if (j->base.job->state != JOB_QUEUED)
        job_tally_resumed(j->base.tally);
    return json_get_str(j->base.job->spec, "spec", "bucket", &j->bucket, err);
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* May there be more of its names than this target has?  One that is not active leads none. */
static bool may_lack(const struct target *t)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct node *self = smap_node(&s->smap, t->id);
    return self != NULL && self->state == NODE_ACTIVE &&
           (self->lag != LAG_NONE || strcmp(self->boot, t->boot) != 0 ||
            !layout_is_settled(&s->smap));
}

static int pause_for(struct job_base *j, const struct error *why, struct error *err)
{
    job_tally_wait(j->tally, why);
    bool goes_on = job_stop_pause(&j->stop, WAIT_MS);
    job_tally_wait(j->tally, NULL);
    return goes_on ? 0 : job_base_check(j, err);
}

static int wait_for_all(struct job_base *j, struct error *err)
{
    struct error why = ERROR_INIT;
    int code = job_base_check(j, err);
    error_set(&why, E_NOT_READY, "target '%s' waits until it has all objects that it leads",
              j->target->id);
    while (code == 0 && may_lack(j->target))
        code = pause_for(j, &why, err);
    return code;
}

/* --- one object ------------------------------------------------------------------------------- */

static int keep(const char *name, const char *why, struct error *err)
{
    return error_set(err, E_PRECONDITION, "object '%s' stays: %s", name, why);
}

static int check(void *ctx, const char *name, const struct attr *current, struct error *err)
{
    const struct expiring *e = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(e->job->base.target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, e->bucket_id);
    const struct s3_lifecycle_now now = expiry_now(s);
    if (current == NULL)
        return keep(name, "its age is not known", err);
    if (b == NULL || !expiry_is_of(e->rules, b))
        return keep(name, "the rules have changed", err);
    if (b->props.write_once || b->props.ring_cap > 0)
        return keep(name, "its bucket is write_once, or a ring", err);
    if (!bucket_has_copies(b) && !layout_is_settled(&s->smap))
        return keep(name, "another target may have a newer one", err);
    return expiry_takes(e->rules, name, current, &now) ? 0 : keep(name, "no rule expires it", err);
}

static void deleted(void *ctx, uint64_t size)
{
    (void)ctx;
    metric_add(metric_get(M_expired_objects_total, NULL), 1);
    metric_add(metric_get(M_expired_bytes_total, NULL), size);
}

static bool is_wanted(const void *ctx, const char *name, const struct index_record *record)
{
    const struct expiring *e = ctx;
    struct owners owners;
    if (!expiry_may_take(e->rules, name, record, &e->now))
        return false;
    owners_of(e->state, e->bucket, name, &owners);
    return owners.acting != NULL && strcmp(owners.acting->id, e->job->base.target->id) == 0;
}

/* --- one bucket ------------------------------------------------------------------------------- */

static int read_part(struct expiring *e, struct index_batch *batch, struct error *err)
{
    struct job_base *j = &e->job->base;
    struct error why = ERROR_INIT;
    int code;
    e->now = expiry_now(e->state);
    while ((code = index_merge_fill(j->target->mountpaths, NULL, batch, &why)) == E_NOT_READY) {
        if ((code = pause_for(j, &why, err)) != 0)
            return code;
    }
    return code == 0 ? 0 : error_set(err, code, "%s", why.message);
}

/* A deletion that its check refuses costs more than a look at the attribute. */
static void leave_out_by_tags(const struct expiring *e, struct index_batch *batch)
{
    struct object_store *store = e->job->base.target->store;
    size_t kept = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct object o;
        const char *name = batch->names[i];
        if (object_head(store, e->bucket_id, name, &o, NULL) != 0 ||
            expiry_takes(e->rules, name, &o.attr, &e->now))
            batch->names[kept++] = name;
    }
    batch->count = kept;
}

static int delete_part(struct expiring *e, const struct index_batch *batch, struct error *err)
{
    struct job_base *j = &e->job->base;
    job_tally_expect(j->tally, batch->count);
    int errnum = batch->count > 0 ? fault_errno_at("expire.delete", e->bucket->name) : 0;
    if (errnum != 0)
        return error_errno(err, errnum, "bucket '%s'", e->bucket->name);
    for (size_t i = 0; i < batch->count && !j->stop.wanted; i++)
        delete_queue_add(&e->queue, e->bucket, batch->names[i]);
    delete_queue_drain(&e->queue);
    return job_tally_hopeless(j->tally) ? job_tally_end(j->tally, err) : 0;
}

static int expire_part(struct expiring *e, struct index_batch *batch, struct error *err)
{
    struct job_base *j = &e->job->base;
    int code = wait_for_all(j, err);
    if (code != 0)
        return code;
    _cleanup_state_ const struct cluster_state *s = state_current(j->target->state);
    e->state = s;
    e->bucket = bmd_bucket_by_id(&s->bmd, e->bucket_id);
    if (e->bucket == NULL || !expiry_is_of(e->rules, e->bucket)) {
        batch->walk.more = false; /* the next job goes by the new rules */
        return 0;
    }
    code = read_part(e, batch, err);
    if (code == 0 && expiry_reads_tags(e->rules))
        leave_out_by_tags(e, batch);
    return code != 0 ? code : delete_part(e, batch, err);
}

static int expire_bucket(struct expiring *e, struct error *err)
{
    struct job_base *j = &e->job->base;
    _cleanup_(index_batch_freep)
    struct index_batch *batch = index_batch_new(e->bucket_id, &j->stop.wanted, is_wanted, e);
    int code = 0;
    delete_queue_init(&e->queue, j, e->bucket_id, check, e);
    e->queue.deleted = deleted;
    while (code == 0 && batch->walk.more)
        code = expire_part(e, batch, err);
    delete_queue_done(&e->queue);
    return code != 0 ? code : job_base_check(j, err);
}

/* --- all buckets ------------------------------------------------------------------------------ */

/* Of the job's buckets the next one with rules, by its id; its rules may be in vain. */
static const struct bucket *next_bucket(const struct expire_job *j, const struct bmd *bmd,
                                        uint64_t after)
{
    const struct bucket *next = NULL;
    for (size_t i = 0; i < bmd->count; i++) {
        const struct bucket *b = &bmd->buckets[i];
        if (b->id > after && (next == NULL || b->id < next->id) &&
            b->texts.text[BUCKET_LIFECYCLE] != NULL && !b->props.write_once &&
            b->props.ring_cap == 0 && (j->bucket == NULL || strcmp(b->name, j->bucket) == 0))
            next = b;
    }
    return next;
}

/* 1 with the rules of the next bucket, 0 behind the last one. */
static int find_next(struct expiring *e)
{
    struct error err = ERROR_INIT;
    struct job_tally *tally = e->job->base.tally;
    _cleanup_state_ const struct cluster_state *s = state_current(e->job->base.target->state);
    const struct bucket *b;
    while ((b = next_bucket(e->job, &s->bmd, e->bucket_id)) != NULL) {
        e->bucket_id = b->id;
        if (expiry_read(b, &e->rules, &err) != 0)
            job_tally_fail(tally, b->name, &err);
        else if (e->rules != NULL)
            return 1;
    }
    return 0;
}

static int run(void *self, struct error *err)
{
    struct expiring e = {.job = self};
    int code = 0;
    while (code == 0 && find_next(&e)) {
        code = expire_bucket(&e, err);
        expiry_free(steal(e.rules));
    }
    return code != 0 ? code : job_tally_end(e.job->base.tally, err);
}

const struct xaction_ops expire_xaction =
    JOB_WORK("expire", .size = sizeof(struct expire_job), .done_word = "deleted", .begin = begin,
             .run = run);
