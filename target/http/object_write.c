/* PUT: the body goes from the connection into what the call's path has opened (write_path.h), piece
 * by piece, in the connection's HTTP thread; the commit ends in another thread, which replies.
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
 * An upload outlives its request while a worker may still come for it: `req` is NULL once the
 * request has been answered, or has gone. */
#include "target/http/object_routes.h"

#include <assert.h>
#include <pthread.h>

#include "ais/dialect.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/node/call.h"
#include "target/copies/object_copy.h"
#include "target/copies/earlier_owners.h"
#include "target/format/ec_manifest.h"
#include "target/node/reply.h"
#include "target/node/member.h"
#include "target/http/put_spec.h"
#include "target/node/target.h"
#include "target/node/write_path.h"

#define UPLOAD_MAGIC 0x0b1ec7b0

enum upload_state { UPLOAD_WAITING, UPLOAD_STORING, UPLOAD_OVER };

struct upload {
    unsigned magic;
    const struct write_path *path; /* while STORING … */
    struct write_parts parts;      /* … the HTTP thread's */
    pthread_mutex_t lock;          /* of what follows; the request's own locks are taken below it */
    enum upload_state state;
    struct object_call *call;  /* NULL once the request may have ended */
    struct quota_claim *claim; /* the call's, as long as its body comes */
    bool body_ended;           /* all of it has come */
    bool ended;                /* and somebody commits it */
    unsigned refs;             /* the request's, the worker's */
};

static struct upload *upload_of(void *ctx)
{
    struct upload *u = ctx;
    assert(u->magic == UPLOAD_MAGIC);
    return u;
}

/* What the path has for itself. */
static void drop_own(struct upload *u)
{
    pthread_mutex_lock(&u->lock);
    void *own = steal(u->parts.own);
    pthread_mutex_unlock(&u->lock);
    if (own != NULL)
        u->path->abort(own);
}

static void upload_unref(struct upload *u)
{
    pthread_mutex_lock(&u->lock);
    bool last = --u->refs == 0;
    pthread_mutex_unlock(&u->lock);
    if (!last)
        return;
    drop_own(u);
    object_put_abort(u->parts.put);
    pthread_mutex_destroy(&u->lock);
    free(u);
}

/* A body that is not over now never will be, and the others wake the request no more. */
static void request_ended(void *arg)
{
    struct upload *u = upload_of(arg);
    drop_own(u);
    upload_unref(u);
}

/* --- storing ---------------------------------------------------------------------------------- */

static void stored(void *arg, const struct attr *attr, const struct error *err)
{
    struct object_call *call = arg;
    log_set_request(http_request_id(call->req));
    struct error copy = *err;
    struct attr shown = attr != NULL ? *attr : (struct attr){.name = ""};
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

struct ending {
    const struct write_path *path;
    struct object_call *call;
    struct write_parts parts;
};

static void commit_ending(void *arg)
{
    struct ending *e = arg;
    e->path->commit(e->call, &e->parts);
    free(e);
}

/* The request does not end before its reply. */
static void commit(struct upload *u)
{
    struct object_call *call = take_call(u);
    if (call == NULL)
        return; /* the rest goes with the upload */
    struct ending *e = xcalloc(1, sizeof *e);
    *e = (struct ending){.path = u->path, .call = call, .parts = u->parts};
    u->parts = (struct write_parts){.put = NULL};
    if (e->parts.put != NULL)
        object_put_await_md5(e->parts.put, commit_ending, e);
    else
        commit_ending(e);
}

static size_t store_piece(struct upload *u, const char *data, size_t len, struct error *err)
{
    if (u->path->take != NULL)
        len = u->path->take(&u->parts, data, len, err);
    else
        object_put_write(u->parts.put, data, len, err);
    if (err->code == 0)
        quota_claim_more(u->claim, len, err);
    return len;
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
    if (state == UPLOAD_OVER)
        return len;
    struct error err = ERROR_INIT;
    len = store_piece(u, data, len, &err);
    if (err.code == 0)
        return len;
    drop_own(u);
    object_put_abort(steal(u->parts.put));
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
static bool upload_start(struct object_call *call, struct write_parts *parts)
{
    struct error err = ERROR_INIT;
    if (put_open(call, parts, &err) == 0)
        return true;
    object_call_fail(call, "put", &err);
    return false;
}

/* The new version will be greater than any that a cut-off owner can still give: what it has need
 * not be known where nothing depends on it. */
static void ask_earlier(struct object_call *call, earlier_fn *fn, struct upload *u)
{
    bool may_skip = call->put.kind == PUT_CLIENT && !object_call_has_conditions(call);
    earlier_ask(call->target, call->state, call->bucket, call->name, may_skip, fn, u);
}

static void earlier_answered(void *arg, const struct earlier_answer *a,
                             const struct error *failure);

/* With the lock held, so that the request does not end meanwhile. */
static void start_locked(struct upload *u)
{
    struct object_call *call = u->call;
    if (!upload_start(call, &u->parts)) {
        u->state = UPLOAD_OVER;
        u->call = NULL; /* it has been answered, and may be gone */
        return;
    }
    u->path = call->path;
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
    } else if (earlier_must_be_asked(call, false)) {
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
                                 const struct write_parts *parts)
{
    struct upload *u = xcalloc(1, sizeof *u);
    *u = (struct upload){.magic = UPLOAD_MAGIC,
                         .path = call->path,
                         .parts = *parts,
                         .state = state,
                         .call = call,
                         .claim = &call->put.claim,
                         .refs = state == UPLOAD_WAITING ? 2 : 1};
    pthread_mutex_init(&u->lock, NULL);
    http_on_end(call->req, request_ended, u);
    return u;
}

/* Another target has put a client's upload together, and says so. */
static bool is_in_parts(const struct http_request *req, enum put_kind kind)
{
    const char *copy = http_header(req, OBJECT_COPY_HEADER);
    return kind == PUT_CLIENT && http_listener(req) == NET_DATA && copy != NULL &&
           strcmp(copy, OBJECT_COPY_UPLOAD) == 0;
}

/* The archive is copied between the body's end and the reply. */
static bool is_appending(void *arg)
{
    struct upload *u = arg;
    pthread_mutex_lock(&u->lock);
    bool ended = u->body_ended;
    pthread_mutex_unlock(&u->lock);
    return ended;
}

static void write_begin(struct http_request *req, enum put_kind kind)
{
    static const struct http_body_ops ops = {.data = body_data, .end = body_end, .cut = body_cut};
    struct object_call *call = object_call_new(req);
    struct write_parts parts = {.put = NULL};
    if (ais_speaks(req))
        http_set_error_form(req, &ais_error_form);
    call->put.kind = kind;
    call->put.in_parts = is_in_parts(req, kind);
    call->put.appends = kind == PUT_CLIENT && object_call_wants_members(call);
    call->done = stored;
    enum admit_verdict verdict = object_call_admit(call);
    bool waits =
        verdict == ADMIT_REFRESH || (verdict == ADMIT_SERVE && earlier_must_be_asked(call, false));
    if (!waits && (verdict != ADMIT_SERVE || !upload_start(call, &parts)))
        return;
    struct upload *u = upload_new(call, waits ? UPLOAD_WAITING : UPLOAD_STORING, &parts);
    if (call->put.appends)
        http_be_patient(req, is_appending, u);
    http_take_body(req, &ops, u);
    if (verdict == ADMIT_REFRESH)
        member_refresh(call->target->member, http_query(req, "dfcv"), refreshed, u);
    else if (waits)
        ask_earlier(call, earlier_answered, u);
}

void object_write_begin(struct http_request *req)
{
    write_begin(req, PUT_CLIENT);
}

void object_copy_begin(struct http_request *req)
{
    write_begin(req, put_kind_of_peer(req));
}
