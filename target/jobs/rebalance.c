#include "target/jobs/rebalance.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "cluster/documents/layout.h"
#include "cluster/placement/copies_reduce.h"
#include "cluster/documents/settings.h"
#include "common/arena.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "target/cold/back.h"
#include "target/copies/copies.h"
#include "target/copies/earlier_owners.h"
#include "target/slices/repair.h"
#include "target/copies/hollow.h"
#include "target/disk/index_merge.h"
#include "target/store/job_pace.h"
#include "target/copies/antientropy.h"
#include "target/node/target.h"

enum {
    KEPT_MAX = 200000, /* names that wait to be dropped; then sending waits for them */
    WAIT_MS = 200,
};

/* A copy that its owner has, too. */
struct kept {
    struct kept *next;
    uint64_t bucket_id;
    struct version version;
    uint64_t due_ms;
    char name[];
};

struct run {
    const struct rebalance *r;
    struct cluster_settings settings;
    bool first; /* pass: what is found is added to what is to be done */
    atomic_bool found;
    atomic_bool waits;    /* a job holds something, or an index is being rebuilt */
    atomic_bool failed;   /* something could not be sent */
    pthread_mutex_t lock; /* of what follows */
    struct kept *oldest, **newest;
    size_t kept_count;
    struct job_pace pace;
    struct antientropy antientropy; /* of buckets with several copies */
};

static int check_placed(const struct run *run, const struct cluster_state *s, struct error *err)
{
    if (s->smap.placed == run->r->placed)
        return 0;
    return error_set(err, E_STALE_MAP, "the owners have changed: a later rebalance continues");
}

/* --- what is kept for a while ----------------------------------------------------------------- */

static void keep(struct run *run, uint64_t bucket_id, const char *name, const struct version *v)
{
    struct kept *k = xcalloc(1, sizeof *k + strlen(name) + 1);
    k->bucket_id = bucket_id;
    k->version = *v;
    k->due_ms = clock_ms() + run->settings.rebalance_keep;
    memcpy(k->name, name, strlen(name) + 1);
    pthread_mutex_lock(&run->lock);
    *run->newest = k;
    run->newest = &k->next;
    run->kept_count++;
    pthread_mutex_unlock(&run->lock);
}

static struct kept *take_oldest(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    struct kept *k = run->oldest;
    if (k != NULL) {
        run->oldest = k->next;
        run->kept_count--;
    }
    if (run->oldest == NULL)
        run->newest = &run->oldest;
    pthread_mutex_unlock(&run->lock);
    return k;
}

/* Does the oldest one wait, and until when? */
static bool oldest_due(struct run *run, uint64_t *due_ms)
{
    pthread_mutex_lock(&run->lock);
    bool any = run->oldest != NULL;
    *due_ms = any ? run->oldest->due_ms : 0;
    pthread_mutex_unlock(&run->lock);
    return any;
}

static int drop(const struct run *run, const struct kept *k, struct error *err)
{
    int errnum = fault_errno("rebalance.drop");
    if (errnum != 0)
        return error_errno(err, errnum, "remove '%s'", k->name);
    return object_drop(run->r->target->store, k->bucket_id, k->name, &k->version, err);
}

static int drop_oldest(struct run *run, struct error *err)
{
    struct kept *k = take_oldest(run);
    int code = drop(run, k, err);
    if (code == E_BUCKET_NOT_FOUND || code == E_HASH_COLLISION)
        code = 0;
    free(k);
    return code;
}

/* Those that are due; all of them, waiting, where more than `most` are there. */
static int drop_kept(struct run *run, size_t most, struct error *err)
{
    uint64_t due_ms;
    int code = 0;
    while (code == 0 && oldest_due(run, &due_ms) && !run->r->stop->wanted) {
        uint64_t now_ms = clock_ms();
        if (due_ms <= now_ms)
            code = drop_oldest(run, err);
        else if (run->kept_count <= most)
            break;
        else
            (void)job_stop_pause(run->r->stop, due_ms - now_ms);
    }
    return code;
}

static void forget_kept(struct run *run)
{
    for (struct kept *k; (k = take_oldest(run)) != NULL;)
        free(k);
}

/* --- one object ------------------------------------------------------------------------------- */

/* *superseded: another earlier owner has a greater version, which it sends. */
static int ask_others(const struct run *run, const struct cluster_state *s, const struct bucket *b,
                      const char *name, const struct version *mine, bool *superseded,
                      struct error *err)
{
    struct target *t = run->r->target;
    size_t n = b->props.copies > 0 ? b->props.copies : 1;
    _cleanup_free_ const struct node **nodes = xcalloc(LAYOUTS_MAX * n, sizeof *nodes);
    const struct node *owner;
    size_t count = layout_ask(&s->smap, b->id, name, n, t->id, false, nodes);
    int code = 0;
    *superseded = false;
    if (smap_owners(&s->smap, b->id, name, 1, &owner) == 0)
        return error_set(err, E_NO_TARGETS, "the cluster has no target that can own objects");
    for (size_t i = 0; i < count && code == 0 && !*superseded; i++) {
        struct object_held held;
        if (nodes[i] == owner)
            continue;
        code = earlier_ask_node(t, s, nodes[i], b->id, name, &held, err);
        *superseded = code == 0 && held.found && version_compare(&held.version, mine) > 0;
    }
    return code;
}

/* What its owner has no room for, or refuses for good, it may have deleted, or written over, since.
 */
static bool owner_has_as_much(const struct run *run, const struct cluster_state *s,
                              const struct bucket *b, const char *name, const struct version *mine)
{
    const struct node *owner;
    struct object_held held;
    return smap_owners(&s->smap, b->id, name, 1, &owner) > 0 &&
           earlier_ask_node(run->r->target, s, owner, b->id, name, &held, NULL) == 0 &&
           held.found && !held.damaged && version_compare(&held.version, mine) >= 0;
}

static int send_open(struct run *run, const struct cluster_state *s, const struct bucket *b,
                     const char *name, const struct object *o, struct error *err)
{
    bool superseded;
    int code = ask_others(run, s, b, name, &o->attr.version, &superseded, err);
    if (code == 0 && superseded)
        return object_drop(run->r->target->store, b->id, name, &o->attr.version, err);
    int errnum = code == 0 ? fault_errno("rebalance.send") : 0;
    if (errnum != 0)
        return error_errno(err, errnum, "send '%s'", name);
    const struct object_copy copy = {.from = o, .bucket_id = b->id, .name = name, .moves = true};
    if (code == 0)
        code = object_copy(run->r->copier, &copy, err);
    if (hollow_is_for_good(code) && owner_has_as_much(run, s, b, name, &o->attr.version))
        code = E_NOT_MODIFIED;
    if (code == E_NOT_MODIFIED) { /* it has it, or what came after it */
        *err = ERROR_INIT;
        code = 0;
    }
    if (code == 0)
        keep(run, b->id, name, &o->attr.version);
    return code;
}

static int try_send(struct run *run, uint64_t bucket_id, const char *name, uint64_t *bytes,
                    struct error *err)
{
    struct target *t = run->r->target;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    struct object o;
    int code = check_placed(run, s, err);
    if (code != 0)
        return code;
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    code = object_open_held(t->store, bucket_id, name, &o, err);
    if (code != 0)
        return code;
    *bytes = o.attr.size;
    code = send_open(run, s, b, name, &o, err);
    close(o.fd);
    return code;
}

static void count(struct run *run, const char *name, uint64_t bytes, const struct error *err)
{
    switch (err->code) {
    case 0:
        job_tally_done(run->r->tally, bytes);
        break;
    case E_OBJECT_NOT_FOUND: /* gone meanwhile, or the index is a moment behind */
    case E_BUCKET_NOT_FOUND:
        job_tally_missing(run->r->tally);
        break;
    case E_OBJECT_RESERVED:
        atomic_store(&run->waits, true);
        break;
    default:
        log_error("object not sent to its owner", lstr("name", name), lerr(err));
        atomic_store(&run->failed, true);
        job_tally_fail(run->r->tally, name, err);
    }
}

static uint64_t rate_now(void *ctx)
{
    const struct target *t = ctx;
    struct cluster_settings settings;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    cluster_settings_get(&s->config, &settings);
    return settings.rebalance_rate;
}

/* Until it is done, or cannot be, or the job ends, or the owners are others. */
static int send_one(struct run *run, uint64_t bucket_id, const char *name, struct error *err)
{
    uint64_t bytes = 0;
    for (unsigned failures = 1;; failures++) {
        struct error why = ERROR_INIT;
        int code = try_send(run, bucket_id, name, &bytes, &why);
        if (run->r->stop->wanted && code != 0)
            return error_set(err, E_ABORTED, "the rebalance was stopped");
        _cleanup_state_ const struct cluster_state *s = state_current(run->r->target->state);
        int placed = check_placed(run, s, err);
        if (placed != 0)
            return placed;
        if (!object_copy_may_pass(code)) {
            count(run, name, bytes, &why);
            (void)job_pace_wait(&run->pace, bytes);
            return 0;
        }
        job_tally_wait(run->r->tally, &why);
        if (!job_stop_back_off(run->r->stop, failures))
            return error_set(err, E_ABORTED, "the rebalance was stopped");
        job_tally_wait(run->r->tally, NULL);
    }
}

/* --- the names -------------------------------------------------------------------------------- */

/* The names of one bucket, and the map that says whose they are. */
struct place {
    struct run *run;
    const struct cluster_state *state;
    struct index_batch *batch;
    uint64_t bucket_id;
};

static bool is_anothers(const void *ctx, const char *name, const struct index_record *rec)
{
    const struct place *p = ctx;
    const struct node *owner;
    (void)rec;
    return smap_owners(&p->state->smap, p->bucket_id, name, 1, &owner) == 1 &&
           strcmp(owner->id, p->run->r->target->id) != 0;
}

/* Of all mountpaths as one row, from which a resilver takes none away. */
static int collect(const struct place *p, struct error *err)
{
    int errnum = fault_errno("rebalance.look");
    if (errnum != 0)
        return error_errno(err, errnum, "look at the names");
    return index_merge_fill(p->run->r->target->mountpaths, NULL, p->batch, err);
}

static int send_nth(void *ctx, size_t i, struct error *err)
{
    const struct place *p = ctx;
    return send_one(p->run, p->bucket_id, p->batch->names[i], err);
}

static int send_batch(struct place *p, struct error *err)
{
    struct run *run = p->run;
    if (p->batch->count == 0)
        return 0;
    atomic_store(&run->found, true);
    if (run->first)
        job_tally_expect(run->r->tally, p->batch->count);
    int code = parallel_for("rebalance", (unsigned)run->settings.rebalance_streams, p->batch->count,
                            send_nth, p, err);
    return code != 0 ? code : drop_kept(run, KEPT_MAX, err);
}

static int walk_bucket(struct run *run, const struct cluster_state *s, uint64_t bucket_id,
                       struct error *err)
{
    struct place p = {.run = run, .state = s, .bucket_id = bucket_id};
    const atomic_bool *stop = &run->r->stop->wanted;
    _cleanup_(index_batch_freep)
    struct index_batch *b = index_batch_new(bucket_id, stop, is_anothers, &p);
    p.batch = b;
    int code = 0;
    while (code == 0 && b->walk.more && !*stop) {
        code = collect(&p, err);
        if (code == 0)
            code = send_batch(&p, err);
    }
    return code;
}

/* --- several copies: each owner has what is here, then what is not ours is dropped ------------ */

static int check_map(void *ctx, const struct cluster_state *s, struct error *err)
{
    return check_placed(ctx, s, err);
}

static bool is_in_slices(const struct run *run, uint64_t bucket_id)
{
    _cleanup_state_ const struct cluster_state *s = state_current(run->r->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    return b != NULL && b->props.ec_data > 0;
}

static void strange(void *ctx, uint64_t bucket_id, const char *name, const struct version *v)
{
    struct run *run = ctx;
    if (is_in_slices(run, bucket_id) &&
        !ec_repair_before_it_goes(&run->antientropy, bucket_id, name))
        return;
    atomic_store(&run->found, true);
    keep(run, bucket_id, name, v);
}

/* A stray is for the job trim_copies (trim_copies.h): it may be one that its owner lacks, and stays
 * then. */
static bool is_stray(void *ctx, const struct cluster_state *s, const struct bucket *b,
                     const char *name)
{
    const struct run *run = ctx;
    return copies_reduce_is_stray(s, b, name, run->r->target->id);
}

static int compare_several(struct run *run, const struct bucket *b, struct error *err)
{
    struct ec_walk walk = {0};
    int code = antientropy_bucket(&run->antientropy, NULL, b->id, err);
    if (code == 0 && b->props.ec_data > 0)
        code = ec_repair_bucket(&run->antientropy, NULL, b->id, &walk, err);
    if (walk.made) /* once more */
        atomic_store(&run->found, true);
    return code != 0 ? code : drop_kept(run, KEPT_MAX, err);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Or is one being rebuilt, or to be? */
static bool are_indexes_good(const struct run *run)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(run->r->target->mountpaths);
    bool good = true;
    for (size_t i = 0; i < set->count && good; i++)
        good = index_check(set->all[i]->index, NULL) == 0;
    return good;
}

static int walk_one(struct run *run, const struct cluster_state *s, const struct bucket *b,
                    struct error *err)
{
    int code =
        bucket_has_copies(b) ? compare_several(run, b, err) : walk_bucket(run, s, b->id, err);
    if ((code != E_NOT_READY && code != E_IO) || are_indexes_good(run))
        return code;
    *err = ERROR_INIT;
    atomic_store(&run->waits, true);
    return 0;
}

static int walk_all(struct run *run, const struct cluster_state *s, struct error *err)
{
    struct target *t = run->r->target;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    int code = mountpath_set_check_whole(set, err);
    for (size_t i = 0; i < s->bmd.count && code == 0 && !run->r->stop->wanted; i++)
        code = walk_one(run, s, &s->bmd.buckets[i], err);
    if (back_uploads_others(t->back)) /* who owns them waits for its end (back.h) */
        atomic_store(&run->waits, true);
    return code;
}

static void wait_for_jobs(const struct run *run)
{
    struct error why;
    error_set(&why, E_OBJECT_RESERVED,
              "jobs or uploads that are under way hold objects, or an index is being rebuilt");
    job_tally_wait(run->r->tally, &why);
    (void)job_stop_pause(run->r->stop, WAIT_MS);
    job_tally_wait(run->r->tally, NULL);
}

/* *done: a pass has found nothing. */
static int run_pass(struct run *run, bool *done, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(run->r->target->state);
    int code = check_placed(run, s, err);
    object_store_settle(run->r->target->store);
    cluster_settings_get(&s->config, &run->settings);
    atomic_store(&run->found, false);
    atomic_store(&run->waits, false);
    if (code == 0)
        code = walk_all(run, s, err);
    if (code == 0)
        code = drop_kept(run, 0, err);
    if (code != 0 || run->r->stop->wanted)
        return code;
    if (run->failed)
        return job_tally_end(run->r->tally, err);
    if (run->waits)
        wait_for_jobs(run);
    *done = !run->found && !run->waits;
    return 0;
}

int rebalance_run(const struct rebalance *r, struct error *err)
{
    struct run run = {.r = r, .first = true, .newest = &run.oldest};
    bool done = false;
    int code = 0;
    pthread_mutex_init(&run.lock, NULL);
    job_pace_init_by(&run.pace, rate_now, r->target, r->stop);
    run.antientropy = (struct antientropy){.target = r->target,
                                           .stop = r->stop,
                                           .tally = r->tally,
                                           .pace = &run.pace,
                                           .check = check_map,
                                           .strange = strange,
                                           .passes = is_stray,
                                           .ctx = &run};
    while (code == 0 && !done && !r->stop->wanted) {
        code = run_pass(&run, &done, err);
        run.first = false;
    }
    forget_kept(&run);
    job_pace_done(&run.pace);
    pthread_mutex_destroy(&run.lock);
    if (code == 0 && !done)
        return error_set(err, E_ABORTED, "the rebalance was stopped");
    return code != 0 ? code : job_tally_end(r->tally, err);
}
