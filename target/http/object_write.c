/* PUT: the body goes from the connection into an object_put, piece by piece, in the connection's
 * HTTP thread; the commit ends in the mountpath's disk thread, which replies.
 *
 *            admitted                     last byte
 *   begin ─────────────▶ STORING ──────────────────────────▶ commit ─▶ reply
 *     │                    ▲   │ error: reply, drop the rest
 *     │ newer state needed,│   │ cut: forget it all
 *     │ earlier owners to  │
 *     │ be asked           │
 *     └───▶ WAITING ───────┘
 *            (takes no byte; a worker goes on when the state has come, or the owners' answer)
 *
 * Of a bucket with several copies the pieces go to the other owners, too (fan.h), and the commit is
 * one of all of them (copies.h).  Of one whose large objects are in slices they go there alone
 * (slices/write.h).
 *
 * An upload outlives its request while a worker may still come for it: `req` is NULL once the
 * request has been answered, or has gone. */
#include "target/http/object_routes.h"

#include <assert.h>
#include <pthread.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/cold/back.h"
#include "target/node/call.h"
#include "target/cold/cold.h"
#include "target/copies/copies.h"
#include "target/copies/earlier.h"
#include "target/format/ec_manifest.h"
#include "target/node/reply.h"
#include "target/slices/write.h"
#include "target/copies/fan.h"
#include "target/copies/hand_on.h"
#include "target/node/member.h"
#include "target/copies/object_copy.h"
#include "target/http/put_spec.h"
#include "target/copies/staged.h"
#include "target/node/target.h"

#define UPLOAD_MAGIC 0x0b1ec7b0

enum upload_state { UPLOAD_WAITING, UPLOAD_STORING, UPLOAD_OVER };

struct upload {
    unsigned magic;
    struct target *target;
    struct object_put *put; /* while STORING: the HTTP thread's */
    struct fan *fan;        /* the same; NULL: there is one copy, or it is one */
    struct ec_upload *ec;   /* the same; NULL: it is kept whole */
    pthread_mutex_t lock;   /* of what follows; the request's own locks are taken below it */
    enum upload_state state;
    struct object_call *call; /* NULL once the request may have ended */
    bool body_ended;          /* all of it has come */
    bool ended;               /* and somebody commits it */
    unsigned refs;            /* the request's, the worker's */
};

static struct upload *upload_of(void *ctx)
{
    struct upload *u = ctx;
    assert(u->magic == UPLOAD_MAGIC);
    return u;
}

static void upload_unref(struct upload *u)
{
    pthread_mutex_lock(&u->lock);
    bool last = --u->refs == 0;
    pthread_mutex_unlock(&u->lock);
    if (!last)
        return;
    object_put_abort(u->put);
    fan_unref(u->fan);
    ec_upload_abort(u->ec);
    pthread_mutex_destroy(&u->lock);
    free(u);
}

/* A body that is not over now never will be, and the others wake the request no more. */
static void request_ended(void *arg)
{
    struct upload *u = upload_of(arg);
    pthread_mutex_lock(&u->lock);
    struct fan *fan = steal(u->fan);
    struct ec_upload *ec = steal(u->ec);
    pthread_mutex_unlock(&u->lock);
    fan_unref(fan);
    ec_upload_abort(ec);
    upload_unref(u);
}

/* --- storing ---------------------------------------------------------------------------------- */

static void stored(void *arg, const struct attr *attr, const struct error *err)
{
    struct object_call *call = arg;
    log_set_request(http_request_id(call->req));
    struct error copy = *err;
    struct attr shown = attr != NULL ? *attr : (struct attr){.name = ""};
    if (attr != NULL && attr_is_pending(attr))
        back_note(call->target->back, call->bucket->id, call->name, attr->modified_ms);
    if (attr != NULL && ec_manifest_show(&shown, &copy) == 0)
        object_reply_stored(call, &shown, NULL);
    else
        object_call_fail(call, "put", &copy);
    log_set_request(NULL);
}

/* The call, which from now on nobody else will answer; NULL where it has been already. */
static struct object_call *take_call(struct upload *u)
{
    pthread_mutex_lock(&u->lock);
    struct object_call *call = u->call;
    u->call = NULL;
    u->state = UPLOAD_OVER;
    pthread_mutex_unlock(&u->lock);
    return call;
}

/* What another owner stages here waits for its word. */
static void stage(struct object_call *call, struct object_put *put)
{
    struct error err = ERROR_INIT;
    const char *id = http_header(call->req, OBJECT_STAGE_HEADER);
    int errnum = fault_errno("copies.stage");
    if (errnum != 0)
        error_errno(&err, errnum, "stage");
    else if (id == NULL)
        error_set(&err, E_INVALID, "a staged copy has " OBJECT_STAGE_HEADER);
    else if (object_put_finish(put, &err) == 0) {
        json_t *doc = object_reply_size(object_put_attr(put));
        if (staged_keep(call->target->copies->staged, id, clock_ms(), put, &err) == 0) {
            http_reply_json(call->req, 200, doc);
            put = NULL;
        }
        json_decref(doc);
    }
    object_put_abort(put);
    if (err.code != 0)
        object_call_fail(call, "stage", &err);
}

/* Another owner takes it. */
static void pass(struct object_call *call, struct object_put *put)
{
    struct handed h;
    struct error err = ERROR_INIT, why = ERROR_INIT;
    if (handed_take(&h, put, &err) == 0) {
        error_set(&why, E_STALE_MAP, "object '%s' is written through another owner", call->name);
        hand_on(call, &h, &why);
    } else {
        object_call_fail(call, "put", &err);
    }
    object_put_abort(put);
}

static void displaced(void *arg, struct handed *h, const struct error *why)
{
    hand_on(arg, h, why);
}

static void commit(struct upload *u)
{
    struct fan *fan = steal(u->fan);
    struct ec_upload *ec = steal(u->ec);
    struct object_call *call = take_call(u);
    if (fan != NULL)
        fan_finish(fan, NULL);
    if (call != NULL && ec != NULL) {
        ec_upload_commit(ec, call, stored);
        return;
    }
    ec_upload_abort(ec);
    if (call == NULL)
        fan_unref(fan);
    else if (fan != NULL)
        copies_put(u->target, call->bucket->id, call->name, steal(u->put), fan,
                   &call->put.condition, stored, displaced, call);
    else if (call->put.passes)
        pass(call, steal(u->put));
    else if (put_is_stage(call))
        stage(call, steal(u->put));
    else if (cold_writes_through(call))
        cold_write_put(call, steal(u->put));
    else if (back_takes(call) && put_has_conditions(call->req))
        back_write(call, steal(u->put), stored);
    else
        object_put_commit(steal(u->put), stored, call);
}

/* *len: how much of it was taken. */
static int store_piece(struct upload *u, const char *data, size_t *len, struct error *err)
{
    if (u->ec == NULL)
        return object_put_write(u->put, data, *len, err);
    *len = ec_upload_take(u->ec, data, *len, err);
    return err->code;
}

/* With the lock.  True, once: whoever asks has to commit it.  The last byte and the worker that
 * lets the body in may come at the same time. */
static bool takes_end(struct upload *u)
{
    bool takes = u->state == UPLOAD_STORING && u->body_ended && !u->ended;
    u->ended = u->ended || takes;
    return takes;
}

static size_t body_data(struct http_request *req, void *ctx, const char *data, size_t len)
{
    (void)req;
    struct upload *u = upload_of(ctx);
    pthread_mutex_lock(&u->lock);
    enum upload_state state = u->state;
    pthread_mutex_unlock(&u->lock);
    if (state == UPLOAD_WAITING)
        return 0;
    struct error err = ERROR_INIT;
    if (u->fan != NULL)
        len = fan_take(u->fan, data, len);
    if (state == UPLOAD_OVER || len == 0 || store_piece(u, data, &len, &err) == 0)
        return len;
    object_put_abort(steal(u->put));
    fan_unref(steal(u->fan));
    ec_upload_abort(steal(u->ec));
    struct object_call *call = take_call(u);
    if (call != NULL)
        object_call_fail(call, "put", &err);
    return len;
}

static void body_end(struct http_request *req, void *ctx)
{
    (void)req;
    struct upload *u = upload_of(ctx);
    pthread_mutex_lock(&u->lock);
    u->body_ended = true;
    bool ends = takes_end(u);
    pthread_mutex_unlock(&u->lock);
    if (ends)
        commit(u);
}

static void body_cut(struct http_request *req, void *ctx)
{
    (void)req;
    struct upload *u = upload_of(ctx);
    take_call(u); /* before the put: a worker may be at it */
}

/* --- beginning -------------------------------------------------------------------------------- */

/* Admitted: opens the put.  An error has been replied to. */
static bool upload_start(struct object_call *call, struct object_put **put)
{
    struct error err = ERROR_INIT;
    if (put_open(call, put, &err) == 0)
        return true;
    fan_unref(steal(call->put.fan));
    ec_upload_abort(steal(call->put.ec));
    object_call_fail(call, "put", &err);
    return false;
}

/* A mover has asked them itself. */
static bool must_ask(const struct object_call *call)
{
    return !call->asked && !copies_are_several(call->bucket) && !put_is_move(call) &&
           earlier_is_asked(call->target, call->state, call->bucket, call->name, false);
}

/* The new version will be greater than any that a cut-off owner can still give: what it has need
 * not be known where nothing depends on it. */
static void ask_earlier(struct object_call *call, earlier_fn *fn, struct upload *u)
{
    bool may_skip = !call->put.from_peer && !put_has_conditions(call->req);
    earlier_ask(call->target, call->state, call->bucket, call->name, may_skip, fn, u);
}

static void earlier_answered(void *arg, const struct earlier_answer *a,
                             const struct error *failure);

/* With the lock held, so that the request does not end meanwhile. */
static void start_locked(struct upload *u)
{
    struct object_call *call = u->call;
    if (!upload_start(call, &u->put)) {
        u->state = UPLOAD_OVER;
        u->call = NULL; /* it has been answered, and may be gone */
        return;
    }
    u->fan = steal(call->put.fan);
    u->ec = steal(call->put.ec);
    u->state = UPLOAD_STORING;
    if (!u->body_ended)
        http_resume_body(call->req);
}

static void go_on_locked(struct upload *u)
{
    struct object_call *call = u->call;
    const struct cluster_state *old = call->state;
    call->state = state_current(call->target->state);
    state_unref(old);
    call->refreshed = true;
    if (object_call_admit(call) != ADMIT_SERVE) {
        u->state = UPLOAD_OVER;
        u->call = NULL;
    } else if (must_ask(call)) {
        u->refs++;
        ask_earlier(call, earlier_answered, u);
    } else {
        start_locked(u);
    }
}

/* The worker is done with it: what a body that has ended meanwhile is waiting for is done here. */
static void worker_leaves(struct upload *u)
{
    pthread_mutex_lock(&u->lock);
    bool ends = takes_end(u);
    pthread_mutex_unlock(&u->lock);
    if (ends)
        commit(u);
    log_set_request(NULL);
    upload_unref(u);
}

static void take_answer_locked(struct upload *u, const struct earlier_answer *a,
                               const struct error *failure)
{
    struct object_call *call = u->call;
    struct error err = failure != NULL ? *failure : ERROR_INIT;
    log_set_request(http_request_id(call->req));
    call->asked = true;
    call->earlier = a->held;
    if (err.code == 0) {
        start_locked(u);
        return;
    }
    u->state = UPLOAD_OVER;
    u->call = NULL;
    object_call_fail(call, "put", &err);
}

static void earlier_answered(void *arg, const struct earlier_answer *a, const struct error *failure)
{
    struct upload *u = upload_of(arg);
    pthread_mutex_lock(&u->lock);
    if (u->call != NULL)
        take_answer_locked(u, a, failure);
    pthread_mutex_unlock(&u->lock);
    worker_leaves(u);
}

static void refreshed(void *arg)
{
    struct upload *u = upload_of(arg);
    pthread_mutex_lock(&u->lock);
    if (u->call != NULL) {
        log_set_request(http_request_id(u->call->req));
        go_on_locked(u);
    }
    pthread_mutex_unlock(&u->lock);
    worker_leaves(u);
}

static struct upload *upload_new(struct object_call *call, enum upload_state state,
                                 struct object_put *put)
{
    struct upload *u = xcalloc(1, sizeof *u);
    *u = (struct upload){.magic = UPLOAD_MAGIC,
                         .target = call->target,
                         .put = put,
                         .fan = steal(call->put.fan),
                         .ec = steal(call->put.ec),
                         .state = state,
                         .call = call,
                         .refs = state == UPLOAD_WAITING ? 2 : 1};
    pthread_mutex_init(&u->lock, NULL);
    http_on_end(call->req, request_ended, u);
    return u;
}

static void write_begin(struct http_request *req, bool from_peer)
{
    static const struct http_body_ops ops = {.data = body_data, .end = body_end, .cut = body_cut};
    struct object_call *call = object_call_new(req);
    call->put.from_peer = from_peer;
    call->put.is_copy = put_is_copy(call);
    struct object_put *put = NULL;
    enum admit_verdict verdict = object_call_admit(call);
    if (verdict == ADMIT_SERVE && must_ask(call)) {
        struct upload *u = upload_new(call, UPLOAD_WAITING, NULL);
        http_take_body(req, &ops, u);
        ask_earlier(call, earlier_answered, u);
    } else if (verdict == ADMIT_SERVE && upload_start(call, &put)) {
        http_take_body(req, &ops, upload_new(call, UPLOAD_STORING, put));
    } else if (verdict == ADMIT_REFRESH) {
        struct upload *u = upload_new(call, UPLOAD_WAITING, NULL);
        http_take_body(req, &ops, u);
        member_refresh(call->target->member, http_query(req, "dfcv"), refreshed, u);
    }
}

void object_write_begin(struct http_request *req)
{
    write_begin(req, false);
}

void object_copy_begin(struct http_request *req)
{
    write_begin(req, true);
}
