/* What the acting owner does with a GET or HEAD (copies.h). */
#include "target/copies/copies.h"

#include "cluster/placement/quorum.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/log.h"
#include "target/node/call.h"
#include "target/copies/acting.h"
#include "target/copies/compare.h"
#include "target/copies/earlier_owners.h"
#include "target/copies/read_repair.h"
#include "target/copies/repair_wanted.h"
#include "target/node/target.h"
#include "target/copies/read_through.h"
#include "target/store/name_queue.h"
#include "target/copies/dirty.h"

static bool is_settled(const struct target *t, const struct bucket *b, const char *name)
{
    return !dirty_has(t->copies->dirty, b->id, name);
}

/* May what is here suffice, if nothing of the name is dirty? */
static bool has_lease(const struct target *t, const struct bucket *b)
{
    return !quorum_is_wanted(b) && !atomic_load(&t->copies->forgone) &&
           (clock_boot_ms() < atomic_load(&t->copies->lease_until_ms) ||
            fault_skips("copies.lease"));
}

/* The name by the state in force. */
struct view {
    const struct cluster_state *state;
    const struct bucket *bucket;
    struct owners owners;
};

static void view_done(struct view *v)
{
    state_unref(v->state);
}

/* False: nothing here counts yet. */
static bool view_take(const struct target *t, uint64_t bucket_id, const char *name, struct view *v)
{
    v->state = state_current(t->state);
    v->bucket = bmd_bucket_by_id(&v->state->bmd, bucket_id);
    if (v->bucket == NULL || !copies_is_let_in(t, v->state))
        return false;
    owners_of(v->state, v->bucket, name, &v->owners);
    return true;
}

bool copies_are_good_here(const struct target *t, const struct bucket *b, const char *name)
{
    if (!has_lease(t, b) || !is_settled(t, b, name))
        return false;
    _cleanup_(view_done)
    struct view v;
    return view_take(t, b->id, name, &v) && owners_is_good(v.state, v.bucket, &v.owners, t->id);
}

bool copies_suffice_here(const struct target *t, const struct bucket *b, const char *name)
{
    if (!has_lease(t, b) || !is_settled(t, b, name))
        return false;
    _cleanup_(view_done)
    struct view v;
    return view_take(t, b->id, name, &v) && copies_check_acting(t, &v.owners, name, NULL) == 0 &&
           !owners_must_compare(v.state, &v.owners);
}

/* What has come since the comparison a majority need not have. */
static bool has_no_more(const struct object_call *call, const struct version *upto)
{
    struct object_held held;
    return object_call_look(call, &held, NULL) == 0 &&
           (!held.found || version_compare(&held.version, upto) <= 0);
}

bool copies_may_answer(const struct object_call *call)
{
    if (call->read.compared)
        return quorum_is_wanted(call->bucket) ? has_no_more(call, &call->read.upto)
                                              : is_settled(call->target, call->bucket, call->name);
    return copies_suffice_here(call->target, call->bucket, call->name);
}

/* May an owner that does not lead answer (owners_readers())? */
static bool may_answer_beside(const struct object_call *call)
{
    const struct target *t = call->target;
    const struct bucket *b = call->bucket;
    if (!has_lease(t, b) || !(is_settled(t, b, call->name) || fault_skips("copies.marks")))
        return false;
    _cleanup_(view_done)
    struct view v;
    return view_take(t, b->id, call->name, &v) &&
           owners_reads_beside(v.state, v.bucket, &v.owners, t->id);
}

static bool is_lost_here(const struct object_call *call, int code)
{
    return code == E_OBJECT_NOT_FOUND &&
           object_seems_lost(call->target->store, call->bucket->id, call->name);
}

/* Asked when it has been looked, so that what was seen is what there was then. */
static bool must_compare(struct object_call *call, int code)
{
    if (call->read.holder || !bucket_has_copies(call->bucket) ||
        (code != 0 && code != E_OBJECT_NOT_FOUND && code != E_CORRUPT && code != E_NO_SPACE))
        return false;
    if (code == E_NO_SPACE) /* others have its bytes: read_from() */
        return call->read.through_tries++ < THROUGH_TRIES;
    call->read.doubted = !call->read.checked && (code == E_CORRUPT || is_lost_here(call, code));
    return call->read.doubted || (code != E_CORRUPT && !copies_may_answer(call));
}

/* An owner that does not lead answers what is whole here, and what no write under way keeps from
 * it: all else is the leader's to say, and to mend.  Asked when it has been looked. */
static bool is_sent_on(const struct object_call *call, const struct object *o, int code)
{
    if (code != 0 || o->attr.slices != NULL)
        return code != OBJECT_WAITS;
    return !may_answer_beside(call);
}

bool copies_must_ask(struct object_call *call, const struct object *o, int code)
{
    return call->read.beside ? is_sent_on(call, o, code) : must_compare(call, code);
}

bool copies_may_mend(const struct object_call *call)
{
    return !call->read.holder && !call->read.checked && bucket_has_copies(call->bucket);
}

static void compare_first(struct object_call *call, void (*here)(struct object_call *call));

/* What is damaged or lost here is brought from another owner meanwhile (of what does not have its
 * checksum it was said where that was seen). */
void copies_ask(struct object_call *call, int code, void (*here)(struct object_call *call))
{
    if (!call->read.beside) {
        compare_first(call, here);
        return;
    }
    if (code == E_CORRUPT || is_lost_here(call, code))
        repair_wanted(call->target, call->bucket->id, call->name);
    if (!copies_send_on(call))
        here(call);
}

bool copies_send_on(struct object_call *call)
{
    struct owners o = {0};
    const struct bucket *b;
    const struct cluster_state *s;
    struct error err = ERROR_INIT;
    int code = copies_take_state(call->target, call->bucket->id, call->name, &s, &b, &o, &err);
    call->read.beside = false;
    if (code == E_STALE_MAP && o.acting != NULL) {
        if (object_call_is_read(call))
            metric_add(metric_get(M_reads_sent_on_total, NULL), 1);
        object_call_redirect(call, s, b, o.acting);
    } else if (code != 0) {
        object_call_fail(call, object_call_is_read(call) ? "get" : "delete", &err);
    }
    state_unref(s);
    return code != 0;
}

/* What is damaged here goes out of the way of a good copy, which the comparison brings. */
static void check_doubted(struct target *t, uint64_t bucket_id, const char *name)
{
    bool lacking;
    struct error err = ERROR_INIT;
    if (object_check(t->store, bucket_id, name, &lacking, &err) != 0)
        log_warn("copy not checked", lstr("name", name), lerr(&err));
    else if (lacking)
        metric_add(metric_get(M_repairs_wanted_total, NULL), 1);
}

static void read_again(struct object_call *call)
{
    compare_first(call, call->serve);
}

/* There is no room for its bytes here: they come from who has them, through this target, if it is
 * that version still.  Else it is compared once more. */
static int read_from(struct object_call *call, const struct compared *compared, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(call->target->state);
    const struct node *holder = smap_node(&s->smap, compared->holder);
    if (holder == NULL || call->read.through_tries++ >= THROUGH_TRIES)
        return error_set(
            err, E_NODE_UNREACHABLE,
            "target '%s' has '%s' and does not send it, and this target has no room for it",
            compared->holder, call->name);
    const struct earlier_answer answer = {
        .node = holder->id, .data_url = holder->data_url, .held.version = compared->upto};
    call->read.here = read_again;
    read_through_begin(call, &answer);
    return 0;
}

/* In its turn. */
static void read_run(void *arg)
{
    struct object_call *call = arg;
    struct compared compared = {0};
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(call->req));
    if (call->read.doubted) {
        check_doubted(call->target, call->bucket->id, call->name);
        call->read.doubted = false;
        call->read.checked = true;
    }
    int code = copies_compare_now(call->target, call->bucket->id, call->name, COMPARE_FOR_ANSWER,
                                  &compared, &err);
    call->read.compared = true;
    call->read.upto = compared.upto;
    if (code == 0 && *compared.holder != '\0')
        code = read_from(call, &compared, &err);
    else if (code == 0)
        call->read.here(call);
    if (code != 0 && (code != E_STALE_MAP || !copies_send_on(call)))
        object_call_fail(call, "get", &err);
    log_set_request(NULL);
}

static void compare_first(struct object_call *call, void (*here)(struct object_call *call))
{
    struct error err = ERROR_INIT;
    call->read.here = here;
    if (name_queue_enter(call->target->copies->turns, call->bucket->id, call->name, read_run, call,
                         &err) != 0)
        object_call_fail(call, "get", &err);
}

struct waiting {
    struct object_call *call;
    struct error *err;
};

/* In its turn. */
static void compare_run(void *arg)
{
    struct waiting *w = arg;
    struct object_call *call = w->call;
    struct compared compared = {0};
    int code = copies_compare_now(call->target, call->bucket->id, call->name, COMPARE_FOR_ANSWER,
                                  &compared, w->err);
    if (code == 0 && *compared.holder != '\0')
        code = error_set(w->err, E_NO_SPACE, "target '%s' has no room for '%s', which '%s' has",
                         call->target->id, call->name, compared.holder);
    if (code == 0) {
        call->read.compared = true;
        call->read.upto = compared.upto;
    }
}

int copies_compare_wait(struct object_call *call, struct error *err)
{
    struct waiting w = {.call = call, .err = err};
    *err = ERROR_INIT;
    (void)name_queue_run(call->target->copies->turns, call->bucket->id, call->name, compare_run, &w,
                         err);
    return err->code;
}
