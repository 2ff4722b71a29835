/* What the acting owner does with a GET or HEAD (copies.h). */
#include "target/copies/copies.h"

#include <semaphore.h>

#include "cluster/placement/quorum.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/node/call.h"
#include "target/copies/acting.h"
#include "target/copies/earlier.h"
#include "target/copies/mend.h"
#include "target/node/target.h"
#include "target/copies/through.h"
#include "target/store/name_queue.h"
#include "target/copies/unsettled.h"

static bool is_settled(const struct target *t, const struct bucket *b, const char *name)
{
    return !unsettled_has(t->copies->unsettled, b->id, name);
}

/* May what is here suffice, if nothing of the name is unsettled? */
static bool has_lease(const struct target *t, const struct bucket *b)
{
    return !quorum_is_wanted(b) && !atomic_load(&t->copies->forgone) &&
           (clock_boot_ms() < atomic_load(&t->copies->lease_until_ms) ||
            fault_skips("copies.lease"));
}

bool copies_are_good_here(const struct target *t, const struct bucket *b, const char *name)
{
    if (!has_lease(t, b) || !is_settled(t, b, name))
        return false;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    struct owners o;
    if ((b = bmd_bucket_by_id(&s->bmd, b->id)) == NULL || !copies_is_let_in(t, s))
        return false;
    owners_of(s, b, name, &o);
    return owners_is_good(s, b, &o, t->id);
}

bool copies_suffice_here(const struct target *t, const struct bucket *b, const char *name)
{
    if (!has_lease(t, b) || !is_settled(t, b, name))
        return false;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    struct owners o;
    if ((b = bmd_bucket_by_id(&s->bmd, b->id)) == NULL || !copies_is_let_in(t, s))
        return false;
    owners_of(s, b, name, &o);
    return copies_check_acting(t, &o, name, NULL) == 0 && !owners_must_compare(s, &o);
}

/* What has come since the comparison a majority need not have. */
static bool has_no_more(const struct object_call *call, const struct version *upto)
{
    struct object_held held;
    return object_look(call->target->store, call->bucket->id, call->name, &held, NULL) == 0 &&
           (!held.found || version_compare(&held.version, upto) <= 0);
}

bool copies_may_answer(const struct object_call *call)
{
    if (call->read.compared)
        return quorum_is_wanted(call->bucket) ? has_no_more(call, &call->read.upto)
                                              : is_settled(call->target, call->bucket, call->name);
    return copies_suffice_here(call->target, call->bucket, call->name);
}

bool copies_may_answer_beside(const struct object_call *call)
{
    const struct target *t = call->target;
    const struct bucket *b = call->bucket;
    struct owners o;
    if (!has_lease(t, b) || !(is_settled(t, b, call->name) || fault_skips("copies.marks")))
        return false;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    if ((b = bmd_bucket_by_id(&s->bmd, b->id)) == NULL || !copies_is_let_in(t, s))
        return false;
    owners_of(s, b, call->name, &o);
    return owners_reads_beside(s, b, &o, t->id);
}

struct reading {
    struct object_call *call;
    void (*here)(struct object_call *call);
};

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
    copies_read(call, call->serve);
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
    through_begin(call, &answer);
    return 0;
}

/* In its turn. */
static void read_run(void *arg)
{
    struct reading *r = arg;
    struct object_call *call = r->call;
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
        r->here(call);
    if (code != 0 && (code != E_STALE_MAP || !copies_send_on(call)))
        object_call_fail(call, "get", &err);
    log_set_request(NULL);
    free(r);
}

void copies_read(struct object_call *call, void (*here)(struct object_call *call))
{
    struct error err = ERROR_INIT;
    struct reading *r = xcalloc(1, sizeof *r);
    *r = (struct reading){.call = call, .here = here};
    if (name_queue_enter(call->target->copies->turns, call->bucket->id, call->name, read_run, r,
                         &err) == 0)
        return;
    free(r);
    object_call_fail(call, "get", &err);
}

struct waiting {
    struct object_call *call;
    struct error *err;
    sem_t over;
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
    sem_post(&w->over);
}

int copies_compare_wait(struct object_call *call, struct error *err)
{
    struct waiting w = {.call = call, .err = err};
    *err = ERROR_INIT;
    sem_init(&w.over, 0, 0);
    int code = name_queue_enter(call->target->copies->turns, call->bucket->id, call->name,
                                compare_run, &w, err);
    while (code == 0 && sem_wait(&w.over) != 0)
        ; /* EINTR is the only failure of an initialised semaphore */
    sem_destroy(&w.over);
    return err->code;
}
