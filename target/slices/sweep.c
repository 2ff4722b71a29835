#include "target/slices/sweep.h"

#include <string.h>

#include "cluster/documents/layout.h"
#include "cluster/placement/owners.h"
#include "common/arena.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/thread.h"
#include "target/slices/ec.h"
#include "target/format/ec_manifest.h"
#include "target/index/walk.h"
#include "target/slices/plan.h"
#include "target/slices/slices.h"
#include "target/slices/sweep_timer.h"
#include "target/copies/ask_peers.h"
#include "target/node/target.h"

enum { NAMES_AT_ONCE = 500 };

struct garbage {
    struct garbage *next;
    uint64_t bucket_id; /* of the objects */
    struct version version;
    char name[EC_SLICE_NAME_MAX];
};

struct pass {
    struct ec *ec;
    uint64_t bucket_id;
    int64_t since_ms; /* of the wall clock: older ones are passed over */
    struct arena *arena;
    struct garbage *found;
    bool unsure; /* of some slice, which may be garbage later: slices/sweep_timer.h */
};

/* --- one slice -------------------------------------------------------------------------------- */

/* Who knows later owners than these, and may have given up what it had to them, does not answer. */
static bool ask_owner(struct target *t, const struct cluster_state *s, const struct node *n,
                      uint64_t bucket_id, const char *object, struct ec_owner *out)
{
    struct object_held held;
    bool heard;
    const struct ask_peers_spec spec = {.target = t,
                                        .state = s,
                                        .nodes = &n,
                                        .count = 1,
                                        .bucket_id = bucket_id,
                                        .name = object,
                                        .these_owners = true};
    int code = strcmp(n->id, t->id) == 0 ? object_look(t->store, bucket_id, object, &held, NULL)
                                         : ask_peers(&spec, &held, &heard, NULL);
    bool knows = code == 0 && !held.unreadable && !held.damaged;
    *out = (struct ec_owner){.answered = knows};
    if (knows) {
        out->slices = held.slices;
        out->hidden = held.hidden_slices;
    }
    return out->answered;
}

static bool is_in_force(const struct target *t, const struct cluster_state *s)
{
    _cleanup_state_ const struct cluster_state *now = state_current(t->state);
    return now->term == s->term && now->version == s->version;
}

/* By the state in force, which stays so until all have answered.  What is hidden may be taken
 * back. */
static bool is_garbage(struct pass *p, uint64_t bucket_id, const char *object, uint64_t tag)
{
    struct target *t = p->ec->target;
    struct owners owners;
    struct ec_owner said[OWNERS_MAX];
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    if (b == NULL)
        return false;
    owners_of(s, b, object, &owners);
    bool settled = layout_is_settled(&s->smap) && owners.awaited == NULL;
    for (size_t i = 0; i < owners.count; i++) {
        if (owners.all[i]->state != NODE_ACTIVE || !settled ||
            !ask_owner(t, s, owners.all[i], bucket_id, object, &said[i])) {
            p->unsure = true;
            return false;
        }
        p->unsure |= said[i].hidden == tag;
    }
    if (!is_in_force(t, s)) {
        p->unsure = true;
        return false;
    }
    return ec_plan_is_garbage(tag, said, owners.count, settled);
}

/* Does nobody know it? */
static bool judge(struct pass *p, uint64_t bucket_id, const char *name)
{
    struct target *t = p->ec->target;
    struct object o;
    uint64_t tag;
    unsigned index;
    if (ec_slice_name_parse(name, &tag, &index, NULL) != 0 ||
        object_head(t->store, ec_slices_bucket(bucket_id), name, &o, NULL) != 0)
        return false; /* a scrub sees to what is damaged */
    const char *object = ec_slice_object(&o.attr);
    return object != NULL && is_garbage(p, bucket_id, object, tag);
}

static void note(struct pass *p, const char *name, const struct version *v)
{
    struct garbage *g = arena_alloc(p->arena, sizeof *g);
    *g = (struct garbage){.next = p->found, .bucket_id = p->bucket_id, .version = *v};
    snprintf(g->name, sizeof g->name, "%s", name);
    p->found = g;
}

/* --- all of them ------------------------------------------------------------------------------ */

struct batch {
    const struct pass *pass;
    int64_t before_ms;
    size_t count;
    struct version versions[NAMES_AT_ONCE];
    bool young[NAMES_AT_ONCE]; /* whoever stores them may be about to say whose they are */
    char names[NAMES_AT_ONCE][EC_SLICE_NAME_MAX];
};

static enum index_answer take(void *ctx, const char *name, const struct index_record *rec)
{
    struct batch *b = ctx;
    if (rec->tombstone || rec->modified_ms < b->pass->since_ms || strlen(name) >= EC_SLICE_NAME_MAX)
        return INDEX_PASS;
    b->young[b->count] = rec->modified_ms >= b->before_ms;
    b->versions[b->count] = rec->version;
    snprintf(b->names[b->count++], EC_SLICE_NAME_MAX, "%.*s", EC_SLICE_NAME_MAX - 1, name);
    return INDEX_TAKE;
}

static void look_through(struct pass *p, struct mountpath *mp)
{
    const atomic_bool *stop = &p->ec->stop.wanted;
    struct index_walk w = {.bucket_id = ec_slices_bucket(p->bucket_id),
                           .names_max = NAMES_AT_ONCE,
                           .stop = stop,
                           .more = true};
    _cleanup_free_ struct batch *b = xcalloc(1, sizeof *b);
    b->pass = p;
    b->before_ms = clock_wall_ms() - (int64_t)p->ec->target->params.slices_grace;
    while (w.more && (b->count = 0, index_walk(mp->index, &w, take, b, NULL)) == 0) {
        for (size_t i = 0; i < b->count && !*stop; i++) {
            if (!judge(p, p->bucket_id, b->names[i]))
                continue;
            if (b->young[i])
                p->unsure = true;
            else
                note(p, b->names[i], &b->versions[i]);
        }
    }
}

/* What nobody knows still: the answers are as old as the time that readers are given. */
static void drop_all(struct pass *p)
{
    struct target *t = p->ec->target;
    struct error err = ERROR_INIT;
    size_t count = 0;
    for (const struct garbage *g = p->found; g != NULL && !p->ec->stop.wanted; g = g->next) {
        if (!judge(p, g->bucket_id, g->name))
            continue;
        count++;
        if (object_drop(t->store, ec_slices_bucket(g->bucket_id), g->name, &g->version, &err) != 0)
            log_error("slice not removed", lstr("slice", g->name), lerr(&err));
    }
    log_info("slices without a manifest removed", lu64("count", count));
}

/* Could all be judged? */
static bool sweep(struct ec *e, int64_t since_ms)
{
    struct target *t = e->target;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    struct pass p = {.ec = e, .since_ms = since_ms, .arena = arena_new(4096)};
    p.unsure = mountpath_set_check_whole(set, NULL) != 0;
    for (size_t i = 0; i < s->bmd.count && mountpath_set_check_whole(set, NULL) == 0; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        p.bucket_id = b->id;
        for (size_t k = 0; k < set->count && b->props.ec_data > 0; k++)
            look_through(&p, set->all[k]);
    }
    if (p.found != NULL && job_stop_pause(&e->stop, t->params.slices_grace))
        drop_all(&p);
    arena_free(p.arena);
    return !p.unsure;
}

/* --- when ------------------------------------------------------------------------------------- */

void ec_sweep_soon(struct ec *e, int64_t since_ms)
{
    pthread_mutex_lock(&e->lock);
    if (since_ms < e->sweep_since_ms)
        e->sweep_since_ms = since_ms;
    pthread_mutex_unlock(&e->lock);
}

static void take_wishes(struct ec *e, struct sweep_timer *t)
{
    pthread_mutex_lock(&e->lock);
    int64_t since_ms = e->sweep_since_ms;
    e->sweep_since_ms = EC_TURN_NONE;
    pthread_mutex_unlock(&e->lock);
    if (since_ms != EC_TURN_NONE)
        sweep_timer_ask(t, since_ms, clock_ms());
}

static bool await_turn(struct ec *e, struct sweep_timer *t)
{
    for (uint64_t ms; (ms = sweep_timer_wait(t, clock_ms())) > 0;) {
        if (!job_stop_pause(&e->stop, ms < t->grace_ms ? ms : t->grace_ms))
            return false;
        take_wishes(e, t);
    }
    return !e->stop.wanted;
}

static void *sweeper_main(void *arg)
{
    struct ec *e = arg;
    const struct target_params *p = &e->target->params;
    struct sweep_timer t;
    sweep_timer_begin(&t, p->slices_sweep_interval, p->slices_grace, clock_ms());
    while (await_turn(e, &t)) {
        int64_t since_ms = sweep_timer_since(&t, clock_ms());
        bool sure = sweep(e, since_ms);
        sweep_timer_done(&t, since_ms, sure, clock_ms());
    }
    return NULL;
}

int ec_sweep_start(struct ec *e, struct error *err)
{
    int code = thread_start("slices", sweeper_main, e, &e->sweeper, err);
    e->sweeps = code == 0;
    return code;
}

void ec_sweep_end(struct ec *e)
{
    if (e->sweeps)
        pthread_join(e->sweeper, NULL);
    e->sweeps = false;
}
