/* What the acting owner does with a PUT or DELETE (copies.h). */
#include "target/copies/copies.h"

#include <string.h>

#include "cluster/placement/quorum.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/semaphores.h"
#include "target/node/call.h"
#include "target/copies/acting.h"
#include "target/copies/commit.h"
#include "target/copies/compare.h"
#include "target/copies/earlier_owners.h"
#include "target/copies/fanout.h"
#include "target/disk/version_floor.h"
#include "target/copies/hand_next.h"
#include "target/copies/hand_on.h"
#include "target/node/target.h"
#include "target/store/name_queue.h"
#include "target/copies/dirty.h"

enum { REFUSAL_TRIES = 2 };

struct write {
    struct target *target;
    uint64_t bucket_id;
    char *name;
    struct object_put *put; /* NULL: a deletion */
    struct fanout *fanout;  /* of a put */
    struct object_condition condition;
    object_done_fn *done;
    copies_displaced_fn *displaced; /* of a put */
    void *arg;
    struct handed handed; /* the bytes of one whose put is over */
    /* in its turn */
    uint64_t lowered; /* the bucket's; who owned the name before knows of that */
    bool has_compared;
    struct compared compared;
    struct copies_order order;
    bool in_doubt;
    struct error refused; /* by check_own(); others may have it already */
    sem_t ended;
};

static void write_free(struct write *w)
{
    object_put_abort(w->put);
    handed_drop(&w->handed);
    fanout_unref(w->fanout);
    state_unref(w->order.state);
    sem_destroy(&w->ended);
    free(w->name);
    free(w);
}

static void write_fails(struct write *w, const struct error *err)
{
    bool may_pass = w->displaced != NULL && hand_may_begin(err->code, w->order.made);
    if (may_pass && w->put != NULL)
        (void)handed_take(&w->handed, w->put, NULL);
    if (may_pass && w->handed.fd >= 0)
        w->displaced(w->arg, &w->handed, err);
    else
        w->done(w->arg, NULL, err);
    write_free(w);
}

/* By others; this target may lack it. */
static void write_is_made(struct write *w)
{
    struct error none = ERROR_INIT;
    w->done(w->arg, object_put_attr(w->put), &none);
    write_free(w);
}

/* Where a majority is enough: who has it not staged is left out, if enough have. */
static int leave_out(struct write *w, struct error *err)
{
    struct copies_order *o = &w->order;
    size_t staged = 0;
    struct error why = ERROR_INIT;
    for (size_t i = 0; i < o->count; i++) {
        o->left_out[i] = w->put != NULL && fanout_check_node(w->fanout, o->others[i]->id,
                                                             object_put_attr(w->put), &why) != 0;
        staged += !o->left_out[i];
    }
    if (staged >= o->needs)
        return 0;
    return error_set(err, why.code != 0 ? why.code : E_NODE_UNREACHABLE,
                     "%zu more owners than this target have to take '%s', and %zu do%s%s", o->needs,
                     w->name, staged, why.code != 0 ? ": " : "", why.message);
}

/* Whoever has to have it has it staged: owners may have come since it began, and who has gone need
 * not have it. */
static int check_staged(const struct write *w, struct error *err)
{
    const struct copies_order *o = &w->order;
    int code = 0;
    for (size_t i = 0; i < o->count && code == 0; i++) {
        if (fanout_has(w->fanout, o->others[i]->id))
            code = fanout_check_node(w->fanout, o->others[i]->id, object_put_attr(w->put), err);
        else
            code = error_set(err, E_STALE_MAP,
                             "target '%s' owns '%s', too, since the request began; send it again",
                             o->others[i]->id, w->name);
    }
    return code;
}

static int write_compare(struct write *w, const struct bucket *b, struct error *err)
{
    int code = copies_compare_all(w->target, w->order.state, b, w->name, COMPARE_FOR_ANSWER,
                                  &w->compared, err);
    w->has_compared = true;
    return w->compared.lost.found ? 0 : code; /* it is written over, or deleted */
}

static int write_prepare(struct write *w, struct error *err)
{
    struct target *t = w->target;
    struct copies_order *o = &w->order;
    const struct bucket *b;
    struct owners owners;
    int code = copies_take_state(t, w->bucket_id, w->name, &o->state, &b, &owners, err);
    if (code != 0)
        return code;
    if ((code = earlier_tell_former(t, o->state, b, w->name, err)) != 0)
        return code;
    w->lowered = b->lowered;
    o->count = owners_others(&owners, t->id, o->others);
    o->needs = quorum_is_wanted(b) ? quorum_of(&owners) - 1 : COPIES_EACH;
    if (w->put != NULL && (code = object_put_finish(w->put, err)) != 0)
        return code;
    if (quorum_is_wanted(b) &&
        !copies_is_let_in(t, o->state)) /* an owner not heard may have its number */
        return error_set(err, E_NOT_READY, "the cluster has not let in this run of '%s' yet",
                         t->id);
    if (quorum_is_wanted(b))
        code = leave_out(w, err);
    else if (w->put != NULL)
        code = check_staged(w, err);
    if (code != 0)
        return code;
    return copies_must_compare(t, o->state, b, &owners, w->name) ? write_compare(w, b, err) : 0;
}

static int tombstone_begin(struct write *w, struct error *err)
{
    const struct bucket *b = bmd_bucket_by_id(&w->order.state->bmd, w->bucket_id);
    const struct object_put_spec spec = {.bucket_id = w->bucket_id,
                                         .name = w->name,
                                         .durability = b->props.durability,
                                         .checksum = CHECKSUM_NONE,
                                         .moved = &w->order.as};
    return object_put_begin(w->target->store, &spec, &w->put, err);
}

static int write_decide(struct write *w, struct error *err)
{
    struct object_moved *as = &w->order.as;
    if (w->put != NULL) {
        int code = object_put_decide(w->put, &w->condition, &w->compared.lost, &as->version, err);
        as->modified_ms = object_put_attr(w->put)->modified_ms;
        w->order.stage = fanout_stage(w->fanout);
        return code;
    }
    int code = object_delete_decide(w->target->store, w->bucket_id, w->name, &w->condition,
                                    &w->compared.lost, &as->version, err);
    as->modified_ms = clock_wall_ms();
    as->tombstone = true;
    return code != 0 ? code : tombstone_begin(w, err);
}

/* As copies_may_answer(): after a comparison another owner may have made a write here that nobody
 * has seen yet. */
static bool refusal_stands(const struct write *w, const struct bucket *b)
{
    struct object_held here;
    if (!w->has_compared)
        return copies_suffice_here(w->target, b, w->name);
    if (!quorum_is_wanted(b))
        return !dirty_has(w->target->copies->dirty, w->bucket_id, w->name);
    return object_look(w->target->store, w->bucket_id, w->name, &here, NULL) == 0 &&
           (!here.found || version_compare(&here.version, &w->compared.upto) <= 0);
}

/* What is refused because of what is here, or is not (a condition, a deletion of nothing), asks
 * nobody to commit: none would say that another acts by now.  It is a read, and answered as one. */
static int write_decide_surely(struct write *w, struct error *err)
{
    const struct bucket *b = bmd_bucket_by_id(&w->order.state->bmd, w->bucket_id);
    for (unsigned left = REFUSAL_TRIES;; left--) {
        int code = write_decide(w, err);
        if (code == 0 || refusal_stands(w, b))
            return code;
        if (left == 0)
            return error_set(err, E_STALE_MAP, "'%s' is written by another owner", w->name);
        if ((code = write_compare(w, b, err)) != 0)
            return code;
    }
}

/* Does nobody answer reads who owned the name until `copies` were lowered, and has not got it? */
static int check_former(const struct write *w, const struct cluster_state *s,
                        const struct bucket *b, struct error *err)
{
    const struct node *former[OWNERS_ASKED_MAX];
    size_t count =
        b->lowered != w->lowered ? owners_former(s, b, w->name, w->target->id, former) : 0;
    for (size_t i = 0; i < count; i++) {
        if (!copies_order_has(&w->order, former[i]->id))
            return error_set(err, E_STALE_MAP, "target '%s' owned '%s', too, until now",
                             former[i]->id, w->name);
    }
    return 0;
}

/* Another owner acts by now, which has this write: it took it before it acted, and shows it. */
static bool acts_with_it(const struct copies_order *o, const struct owners *owners)
{
    for (size_t i = 0; owners->acting != NULL && i < o->count; i++) {
        if (strcmp(o->others[i]->id, owners->acting->id) == 0)
            return o->fates[i] == COPY_MADE;
    }
    return false;
}

/* Under the name's lock, right before it is seen: does this target still act, for nobody who has
 * not got it? Who has acted since, and has asked here, has been told that this write is not there.
 */
static int check_own(void *ctx, const struct attr *current, struct error *err)
{
    const struct write *w = ctx;
    const struct copies_order *o = &w->order;
    const struct cluster_state *s;
    const struct bucket *b;
    struct owners owners;
    const struct node *others[OWNERS_MAX];
    (void)current;
    int code = copies_take_state(w->target, w->bucket_id, w->name, &s, &b, &owners, err);
    if (code == E_STALE_MAP && b != NULL && !quorum_is_wanted(b) && acts_with_it(o, &owners)) {
        *err = ERROR_INIT;
        code = 0;
    }
    if (code == 0 && quorum_is_wanted(b) && copies_order_made(o, &owners) + 1 < quorum_of(&owners))
        code = error_set(err, E_STALE_MAP, "no majority of the owners of '%s' has it", w->name);
    if (code == 0)
        code = check_former(w, s, b, err);
    size_t count = code == 0 ? owners_others(&owners, w->target->id, others) : 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        if (!copies_order_has(o, others[i]->id))
            code = error_set(err, E_STALE_MAP, "target '%s' owns '%s', too, by now", others[i]->id,
                             w->name);
    }
    state_unref(s);
    return code;
}

/* For bring_to_all(). */
static void keep_own(void *ctx, struct object_put *put)
{
    struct write *w = ctx;
    w->put = put;
}

static void own_done(void *arg, const struct attr *attr, const struct error *err)
{
    struct write *w = arg;
    struct error copy = *err;
    if (copy.code == E_STALE_MAP && (w->order.made ? w->put != NULL : w->handed.fd >= 0)) {
        w->refused = copy;
        sem_post(&w->ended);
        return;
    }
    if (attr != NULL && fault_errno("copies.answer") != 0)
        error_set(&copy, E_IN_DOUBT, "the answer was lost");
    else if (copy.code == E_NOT_MODIFIED || (copy.code != 0 && w->order.made))
        error_recode(&copy, E_IN_DOUBT, "others have '%s', or what came after it", w->name);
    w->in_doubt = copy.code == E_IN_DOUBT;
    w->done(w->arg, copy.code == 0 ? attr : NULL, &copy);
    sem_post(&w->ended);
}

static void write_own(struct write *w)
{
    const struct object_condition fence = {
        .check = check_own, .kept = w->order.made ? keep_own : NULL, .ctx = w};
    struct object_moved as = w->order.as;
    struct error err = ERROR_INIT;
    as.stays = true;                   /* with this it is seen, and the others have it */
    if (copies_order_lacks(&w->order)) /* who has it not is brought up to it (dirty_worker.h) */
        dirty_mark(w->target->copies->dirty, w->bucket_id, w->name, &w->order.as.version,
                   clock_ms());
    int errnum = fault_errno("copies.own");
    if (errnum != 0) {
        error_errno(&err, errnum, "commit");
        own_done(w, NULL, &err);
        return;
    }
    if (w->displaced != NULL)
        (void)handed_take(&w->handed, w->put, NULL);
    object_put_commit_as(steal(w->put), &as, &fence, own_done, w);
    semaphore_wait(&w->ended);
}

/* Others may have it, or get it yet, and this target may not: no later write has its version. */
static void keep_version_apart(const struct write *w)
{
    struct error err = ERROR_INIT;
    struct target *t = w->target;
    const struct version *v = &w->order.as.version;
    if (version_floor_cover(t->mountpaths, v->counter, &err) == 0)
        return;
    log_error("version not covered", lstr("name", w->name), lerr(&err));
    dirty_mark(t->copies->dirty, w->bucket_id, w->name, v, clock_ms());
}

/* Where a majority is enough, the next leader's word is not that of all owners. */
static bool next_leader_has(const struct write *w)
{
    const struct bucket *b = bmd_bucket_by_id(&w->order.state->bmd, w->bucket_id);
    return !quorum_is_wanted(b) &&
           copies_next_leader_has(w->target, w->bucket_id, w->name, &w->order.as.version);
}

/* Others have it, and a target that owns the name by now has not.  A read would find it in doubt,
 * and bring it to all owners before it is seen; where that is done it is made. */
static void bring_to_all(struct write *w)
{
    const struct cluster_state *s;
    const struct bucket *b;
    struct owners owners;
    struct error err = ERROR_INIT;
    int code = copies_take_state(w->target, w->bucket_id, w->name, &s, &b, &owners, &err);
    bool asks = code == 0 && !quorum_is_wanted(b);
    if (asks)
        code = copies_compare_all(w->target, s, b, w->name, COMPARE_FOR_ANSWER, &w->compared, &err);
    /* `holder`: this target has just pulled it, and had no room: then it is not made here. */
    bool made = asks && code == 0 && !w->compared.lost.found && *w->compared.holder == '\0' &&
                version_compare(&w->compared.upto, &w->order.as.version) == 0;
    state_unref(s);
    if (code == E_STALE_MAP)
        made = next_leader_has(w);
    w->in_doubt = !made;
    if (made)
        err = ERROR_INIT;
    else
        error_set(&err, E_IN_DOUBT, "others have '%s', or what came after it: %s", w->name,
                  w->refused.message);
    w->done(w->arg, made ? object_put_attr(w->put) : NULL, &err);
}

/* In its turn. */
static void write_run(void *arg)
{
    struct write *w = arg;
    struct error err = ERROR_INIT;
    int code = write_prepare(w, &err);
    if (code == 0)
        code = write_decide_surely(w, &err);
    if (code == 0)
        code = copies_commit_others(&w->order, &err);
    if (code != 0) {
        if (w->order.made)
            keep_version_apart(w);
        if (code == E_IN_DOUBT && next_leader_has(w))
            write_is_made(w);
        else
            write_fails(w, &err);
        return;
    }
    if (w->fanout != NULL)
        fanout_keep(w->fanout);
    write_own(w);
    if (w->refused.code != 0 && w->order.made) {
        bring_to_all(w);
    } else if (w->refused.code != 0) {
        write_fails(w, &w->refused);
        return;
    }
    if (w->in_doubt)
        keep_version_apart(w);
    write_free(w);
}

/* All have staged it, or failed: in the data loop's thread, or the caller's. */
static void write_enter(void *arg)
{
    struct write *w = arg;
    struct error err = ERROR_INIT;
    if (name_queue_enter(w->target->copies->turns, w->bucket_id, w->name, write_run, w, &err) != 0)
        write_fails(w, &err);
}

static struct write *write_new(struct target *t, uint64_t bucket_id, const char *name,
                               const struct object_condition *condition, object_done_fn *done,
                               void *arg)
{
    struct write *w = xcalloc(1, sizeof *w);
    *w = (struct write){.target = t,
                        .bucket_id = bucket_id,
                        .name = xstrdup(name),
                        .condition = *condition,
                        .handed = {.fd = -1},
                        .refused = ERROR_INIT,
                        .done = done,
                        .arg = arg};
    w->order.target = t;
    w->order.bucket_id = bucket_id;
    w->order.name = w->name;
    sem_init(&w->ended, 0, 0);
    return w;
}

void copies_put(struct target *t, uint64_t bucket_id, const char *name, struct object_put *put,
                struct fanout *fanout, const struct object_condition *condition,
                object_done_fn *done, copies_displaced_fn *displaced, void *arg)
{
    struct write *w = write_new(t, bucket_id, name, condition, done, arg);
    w->displaced = displaced;
    w->put = put;
    w->fanout = fanout;
    fanout_await(fanout, write_enter, w);
}

void copies_delete(struct target *t, uint64_t bucket_id, const char *name,
                   const struct object_condition *condition, object_done_fn *done, void *arg)
{
    write_enter(write_new(t, bucket_id, name, condition, done, arg));
}

static void resume(void *arg)
{
    http_resume_body(arg);
}

int copies_begin_put(struct object_call *call, const struct object_put_spec *put,
                     struct fanout **fanout, struct error *err)
{
    struct target *t = call->target;
    const struct node *others[OWNERS_MAX];
    struct owners owners;
    owners_of(call->state, call->bucket, call->name, &owners);
    int code = copies_check_acting(t, &owners, call->name, err);
    if (code != 0)
        return code;
    size_t count = owners_others(&owners, t->id, others);
    if (quorum_is_wanted(call->bucket) && count + 1 < quorum_of(&owners))
        return error_set(err, E_NODE_UNREACHABLE, "a majority of the owners of '%s' is unreachable",
                         call->name);
    const struct fanout_spec spec = {.target = t,
                                     .state = call->state,
                                     .bucket = call->bucket,
                                     .name = call->name,
                                     .others = others,
                                     .count = count,
                                     .length = http_content_length(call->req),
                                     .content_type = put->content_type,
                                     .meta = put->meta,
                                     .meta_len = put->meta_len,
                                     .durability = put->durability,
                                     .md5 = put->md5 != NULL,
                                     .sum = put->sum,
                                     .resume = resume,
                                     .arg = call->req};
    *fanout = fanout_new(&spec);
    return 0;
}
