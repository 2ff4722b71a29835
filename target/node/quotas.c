#include "target/node/quotas.h"

#include <pthread.h>
#include <string.h>

#include "common/clock.h"
#include "common/id_rows.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "common/parse.h"
#include "target/node/quota_count.h"
#include "target/node/target.h"

enum { COUNT_SHARE = 20 }; /* a count takes at most this part of the time */

struct row {
    uint64_t bucket_id;
    struct quota_ledger ledger;
};

struct quotas {
    struct target *target;
    metric_t *refused;
    atomic_bool stopping;
    pthread_mutex_t lock; /* of what follows */
    size_t count;
    struct row *rows; /* by bucket id … */
    uint64_t version; /* … of the state that they are adjusted to */
    size_t next;      /* of the rows: the first of the next report */
    bool counting;
    uint64_t due_ms;        /* no count begins before */
    struct quota_mark mark; /* of the last count; while one runs, its own */
    bool complained;
};

struct quotas *quotas_new(struct target *t)
{
    struct quotas *q = xcalloc(1, sizeof *q);
    q->target = t;
    q->refused = metric_get(M_quota_refused_total, NULL);
    pthread_mutex_init(&q->lock, NULL);
    return q;
}

void quotas_stop(struct quotas *q)
{
    if (q != NULL)
        atomic_store(&q->stopping, true);
}

void quotas_free(struct quotas *q)
{
    if (q == NULL)
        return;
    pthread_mutex_destroy(&q->lock);
    free(q->rows);
    free(q);
}

/* --- rows, with the lock ---------------------------------------------------------------------- */

static struct quota_ledger *find(const struct quotas *q, uint64_t bucket_id)
{
    bool found;
    size_t at = id_rows_place(q->rows, q->count, sizeof *q->rows, bucket_id, &found);
    return found ? &q->rows[at].ledger : NULL;
}

static struct quota_ledger *make(struct quotas *q, uint64_t bucket_id)
{
    bool found;
    size_t at = id_rows_place(q->rows, q->count, sizeof *q->rows, bucket_id, &found);
    if (!found)
        q->rows = id_rows_insert(q->rows, &q->count, sizeof *q->rows, at, bucket_id);
    return &q->rows[at].ledger;
}

/* One row for each bucket that has a quota.  What others count for is not there any more. */
static void adjust(struct quotas *q, const struct cluster_state *s)
{
    size_t kept = 0;
    if (q->version == s->version)
        return;
    q->version = s->version;
    for (size_t i = 0; i < q->count; i++) {
        if (bmd_has_quota(&s->bmd, q->rows[i].bucket_id))
            q->rows[kept++] = q->rows[i];
    }
    q->count = kept;
    for (size_t i = 0; i < s->bmd.count; i++) {
        if (bucket_props_have_quota(&s->bmd.buckets[i].props))
            make(q, s->bmd.buckets[i].id);
    }
}

/* --- counting, in a worker -------------------------------------------------------------------- */

struct count {
    size_t rows;
    bool unchanged; /* what was counted last is still so */
    struct quota_mark mark;
    struct row *found; /* own: the new count */
};

static void count_begin(struct quotas *q, const struct cluster_state *s, struct count *c)
{
    struct quota_mark last;
    pthread_mutex_lock(&q->lock);
    adjust(q, s);
    c->rows = q->count;
    c->found = xcalloc(q->count + 1, sizeof *c->found);
    c->unchanged = true;
    for (size_t i = 0; i < q->count; i++) {
        quota_count_begins(&q->rows[i].ledger);
        c->found[i] = q->rows[i];
        c->unchanged = c->unchanged && q->rows[i].ledger.counted;
    }
    last = q->mark;
    pthread_mutex_unlock(&q->lock);
    c->mark = last;
}

/* The mark is read after the rows: what ends later changes it, or is still open in them. */
static int count_all(struct quotas *q, const struct cluster_state *s, struct count *c,
                     struct error *err)
{
    const struct target *t = q->target;
    struct quota_mark now;
    int code = quota_mark_of(t->mountpaths, s, &now, err);
    c->unchanged = code == 0 && c->unchanged && quota_mark_same(&now, &c->mark);
    c->mark = now;
    for (size_t i = 0; i < c->rows && code == 0 && !c->unchanged; i++) {
        const struct bucket *b = bmd_bucket_by_id(&s->bmd, c->found[i].bucket_id);
        code = quota_count(t->mountpaths, s, t->id, b, &q->stopping, &c->found[i].ledger.own, err);
    }
    return code;
}

static void count_end(struct quotas *q, const struct count *c, uint64_t begun_ms, int code)
{
    uint64_t now_ms = clock_ms();
    pthread_mutex_lock(&q->lock);
    q->counting = false;
    q->due_ms = now_ms + (now_ms - begun_ms) * (COUNT_SHARE - 1);
    if (code == 0)
        q->mark = c->mark;
    for (size_t i = 0; i < c->rows && code == 0; i++) {
        struct quota_ledger *l = find(q, c->found[i].bucket_id);
        if (l != NULL)
            quota_count_ends(l, c->found[i].ledger.own);
    }
    pthread_mutex_unlock(&q->lock);
}

/* Once for all counts that fail one after another. */
static void complain(struct quotas *q, const struct error *err)
{
    if (err->code != 0 && err->code != E_ABORTED && !q->complained)
        log_warn("buckets with a quota not counted", lerr(err));
    q->complained = err->code != 0;
}

static void count_run(void *arg)
{
    struct quotas *q = arg;
    struct count c = {0};
    struct error err = ERROR_INIT;
    uint64_t begun_ms = clock_ms();
    _cleanup_state_ const struct cluster_state *s = state_current(q->target->state);
    count_begin(q, s, &c);
    int code = count_all(q, s, &c, &err);
    complain(q, &err);
    count_end(q, &c, begun_ms, code);
    free(c.found);
}

/* --- keepalives ------------------------------------------------------------------------------- */

static bool count_is_due(struct quotas *q)
{
    bool due = !q->counting && q->count > 0 && clock_ms() >= q->due_ms;
    q->counting = q->counting || due;
    return due;
}

static json_t *report_json(struct quotas *q)
{
    json_t *list = json_array();
    for (size_t i = 0; i < q->count && i < QUOTAS_AT_ONCE; i++) {
        const struct row *row = &q->rows[q->next++ % q->count];
        struct quota_amount own = quota_own(&row->ledger);
        if (row->ledger.counted)
            json_array_append_new(
                list, json_pack("{sI sI sI}", "bucket", (json_int_t)row->bucket_id, "objects",
                                (json_int_t)own.objects, "bytes", (json_int_t)own.bytes));
    }
    return list;
}

json_t *quotas_report(struct quotas *q)
{
    _cleanup_state_ const struct cluster_state *s = state_current(q->target->state);
    pthread_mutex_lock(&q->lock);
    adjust(q, s);
    json_t *list = q->count > 0 ? report_json(q) : NULL;
    bool due = count_is_due(q);
    pthread_mutex_unlock(&q->lock);
    if (due && pool_submit(q->target->workers, count_run, q, NULL) != 0) {
        pthread_mutex_lock(&q->lock); /* the workers are busy: with the next keepalive */
        q->counting = false;
        pthread_mutex_unlock(&q->lock);
    }
    return list;
}

static int amount_of(json_t *doc, const char *path, struct quota_amount *out, struct error *err)
{
    int code = json_need_u64(doc, path, "objects", &out->objects, err);
    return code == 0 ? json_need_u64(doc, path, "bytes", &out->bytes, err) : code;
}

static int hear_one(struct quotas *q, json_t *doc, struct error *err)
{
    uint64_t bucket_id;
    struct quota_amount others, yours;
    int code = json_need_u64(doc, "quotas", "bucket", &bucket_id, err);
    if (code == 0)
        code = amount_of(doc, "quotas", &others, err);
    if (code == 0)
        code = amount_of(json_object_get(doc, "yours"), "quotas.yours", &yours, err);
    if (code != 0)
        return code;
    pthread_mutex_lock(&q->lock);
    struct quota_ledger *l = find(q, bucket_id);
    if (l != NULL)
        quota_hear(l, others, yours);
    pthread_mutex_unlock(&q->lock);
    return 0;
}

int quotas_hear(struct quotas *q, json_t *list, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < json_array_size(list) && code == 0; i++)
        code = hear_one(q, json_array_get(list, i), err);
    return code;
}

struct quota_amount quotas_own(struct quotas *q, uint64_t bucket_id)
{
    pthread_mutex_lock(&q->lock);
    const struct quota_ledger *l = find(q, bucket_id);
    struct quota_amount own = l != NULL ? quota_own(l) : (struct quota_amount){0};
    pthread_mutex_unlock(&q->lock);
    return own;
}

/* --- one write -------------------------------------------------------------------------------- */

static int refuse(const struct quota_claim *c, enum quota_verdict v, struct quota_amount used,
                  struct error *err)
{
    const struct bucket *b = c->bucket;
    char has[16], may[16];
    metric_add(c->quotas->refused, 1);
    if (v == QUOTA_OBJECTS_USED)
        return error_set(err, E_QUOTA_EXCEEDED,
                         "bucket '%s' has %llu objects, and its quota is %llu: delete some, or "
                         "raise the quota ('dfcctl bucket props %s --quota-objects')",
                         b->name, (unsigned long long)used.objects,
                         (unsigned long long)b->props.quota_objects, b->name);
    return error_set(err, E_QUOTA_EXCEEDED,
                     "bucket '%s' has %s, its quota is %s, and this write does not fit: delete "
                     "objects, or raise the quota ('dfcctl bucket props %s --quota-bytes')",
                     b->name, format_size(used.bytes, has), format_size(b->props.quota_bytes, may),
                     b->name);
}

/* Grows the claim to `growth` in all. */
static int take(struct quota_claim *c, struct quota_amount growth, struct error *err)
{
    const struct quota_amount more = quota_minus(growth, c->growth);
    struct quotas *q = c->quotas;
    pthread_mutex_lock(&q->lock);
    struct quota_ledger *l = make(q, c->bucket->id);
    const struct quota_amount used = quota_used(l);
    enum quota_verdict v = quota_judge(&c->bucket->props, used, more);
    if (v == QUOTA_FITS)
        quota_open(l, more);
    pthread_mutex_unlock(&q->lock);
    if (v != QUOTA_FITS)
        return refuse(c, v, used, err);
    c->growth = quota_plus(c->growth, more);
    return 0;
}

/* The index says it without a lock or a disk; what it does not say counts as new. */
static void look_at_old(struct quota_claim *c, const char *name, const struct object_held *earlier)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(c->quotas->target->mountpaths);
    struct mountpath *mp;
    struct index_record rec;
    char job[ATTR_JOB_MAX + 1];
    if (mountpath_set_pick(set, c->bucket->id, name, &mp, NULL) == 0 &&
        index_find(mp->index, c->bucket->id, name, &rec, job, NULL) == 1 && !rec.tombstone) {
        c->replaces = true;
        c->old_bytes = rec.size;
    } else if (earlier != NULL && earlier->visible) {
        c->replaces = true;
        c->old_bytes = earlier->size;
    }
}

int quota_claim_begin(struct quotas *q, const struct bucket *b, const char *name, uint64_t size,
                      const struct object_held *earlier, struct quota_claim *out, struct error *err)
{
    *out = (struct quota_claim){0};
    if (!bucket_props_have_quota(&b->props))
        return 0;
    struct quota_claim c = {.quotas = q, .bucket = b, .grows = size == OBJECT_SIZE_UNKNOWN};
    look_at_old(&c, name, earlier);
    c.bytes = c.grows ? 0 : size;
    int code = take(&c, quota_growth(c.bytes, c.replaces, c.old_bytes), err);
    if (code == 0)
        *out = c;
    return code;
}

int quota_claim_more(struct quota_claim *c, uint64_t bytes, struct error *err)
{
    if (!c->grows)
        return 0;
    c->bytes += bytes;
    return take(c, quota_growth(c->bytes, c->replaces, c->old_bytes), err);
}

void quota_claim_end(struct quota_claim *c)
{
    struct quotas *q = c->quotas;
    if (q == NULL)
        return;
    pthread_mutex_lock(&q->lock);
    struct quota_ledger *l = find(q, c->bucket->id);
    if (l != NULL)
        quota_end(l, c->growth);
    pthread_mutex_unlock(&q->lock);
    *c = (struct quota_claim){0};
}

int quota_take(struct quotas *q, const struct bucket *b, const char *name, uint64_t size,
               struct error *err)
{
    struct quota_claim c;
    uint64_t least = size != OBJECT_SIZE_UNKNOWN ? size : 1;
    int code = quota_claim_begin(q, b, name, least, NULL, &c, err);
    if (code == 0)
        quota_claim_end(&c);
    return code;
}
