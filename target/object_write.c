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
 * (ec_write.h).
 *
 * An upload outlives its request while a worker may still come for it: `req` is NULL once the
 * request has been answered, or has gone. */
#include "target/object_routes.h"

#include <assert.h>
#include <pthread.h>
#include <strings.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "target/back.h"
#include "target/backend/meta.h"
#include "target/call.h"
#include "target/cold.h"
#include "target/copies.h"
#include "target/earlier.h"
#include "target/ec_manifest.h"
#include "target/ec_write.h"
#include "target/fan.h"
#include "target/hidden.h"
#include "target/member.h"
#include "target/object_copy.h"
#include "target/staged.h"
#include "target/target.h"
#include "target/unsettled.h"

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
    bool body_ended;          /* while WAITING: an empty body */
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

/* --- what the headers say --------------------------------------------------------------------- */

struct meta {
    struct buf pairs;
    struct error err;
};

static void collect_meta(void *ctx, const char *name, const char *value)
{
    struct meta *m = ctx;
    size_t prefix = strlen(OBJECT_META_PREFIX);
    if (m->err.code != 0 || strncasecmp(name, OBJECT_META_PREFIX, prefix) != 0)
        return;
    if (m->pairs.len + strlen(name) - prefix + strlen(value) + 2 > ATTR_META_MAX) {
        error_set(&m->err, E_INVALID, "user metadata has more than %d bytes", ATTR_META_MAX);
        return;
    }
    for (const char *at = name + prefix; *at != '\0'; at++)
        buf_putc(&m->pairs, *at >= 'A' && *at <= 'Z' ? (char)(*at + ('a' - 'A')) : *at);
    buf_putc(&m->pairs, '\0');
    buf_append(&m->pairs, value, strlen(value) + 1);
}

/* What the bytes must have: Dfc-Checksum-Type and -Value, or Content-MD5. */
static int parse_expected(const struct http_request *req, struct checksum_value *sum,
                          const struct checksum_value **expect, struct error *err)
{
    const char *type_name = http_header(req, "Dfc-Checksum-Type");
    const char *value = http_header(req, "Dfc-Checksum-Value");
    const char *md5 = http_header(req, "Content-MD5");
    enum checksum_type type;
    *expect = NULL;
    if (md5 != NULL && (type_name != NULL || value != NULL))
        return error_set(err, E_INVALID, "Content-MD5 and Dfc-Checksum: send one of them");
    if (md5 != NULL && !checksum_parse_base64(CHECKSUM_MD5, md5, sum))
        return error_set(err, E_INVALID, "Content-MD5: '%.64s' is not the base64 of an MD5", md5);
    if (md5 != NULL)
        *expect = sum;
    if (type_name == NULL && value == NULL)
        return 0;
    if (type_name == NULL || value == NULL)
        return error_set(err, E_INVALID, "header %s is missing",
                         value == NULL ? "Dfc-Checksum-Value" : "Dfc-Checksum-Type");
    int code = checksum_from_name(type_name, &type, err);
    if (code == 0)
        code = checksum_parse(type, value, sum, err);
    if (code != 0)
        return error_recode(err, E_INVALID, "Dfc-Checksum");
    *expect = type != CHECKSUM_NONE ? sum : NULL;
    return 0;
}

static bool has_conditions(const struct http_request *req)
{
    return http_header(req, "If-Match") != NULL || http_header(req, "If-None-Match") != NULL ||
           http_header(req, "If-Unmodified-Since") != NULL;
}

static int check_conditions(void *ctx, const struct attr *current, struct error *err)
{
    const struct object_call *call = ctx;
    int code = copies_are_several(call->bucket) ? 0 : object_call_check_owners(call, err);
    return code != 0 ? code : object_call_check_conditions(call, HTTP_PUT, current, err);
}

/* --- copies that other targets send ----------------------------------------------------------- */

/* An object on its way from an earlier owner (rebalance.h): with its version, time and checksum. */
static bool is_move(const struct http_request *req)
{
    const char *text = http_header(req, OBJECT_COPY_HEADER);
    return text != NULL && strcmp(text, OBJECT_COPY_MOVE) == 0;
}

static bool is_stage(const struct http_request *req)
{
    const char *text = http_header(req, OBJECT_COPY_HEADER);
    return text != NULL && strcmp(text, OBJECT_COPY_STAGE) == 0;
}

bool object_is_copy(const struct http_request *req)
{
    return is_move(req) || is_stage(req);
}

static int parse_move(const struct object_call *call, struct object_moved *moved, struct error *err)
{
    const char *version = http_header(call->req, "Dfc-Version");
    const char *modified = http_header(call->req, OBJECT_MODIFIED_HEADER);
    uint64_t modified_ms = 0;
    if (version == NULL || modified == NULL)
        return error_set(err, E_INVALID,
                         "an object that is moved has Dfc-Version and " OBJECT_MODIFIED_HEADER);
    int code = version_parse(version, &moved->version, err);
    if (code == 0)
        code = parse_u64(modified, &modified_ms, err);
    moved->modified_ms = (int64_t)(modified_ms & INT64_MAX);
    moved->tombstone = http_header(call->req, OBJECT_TOMBSTONE_HEADER) != NULL;
    moved->pending = http_header(call->req, OBJECT_PENDING_HEADER) != NULL;
    return code != 0 ? error_recode(err, E_INVALID, OBJECT_COPY_HEADER) : 0;
}

/* What was the newest of all when it was sent need not be if it comes late: others may have owned
 * and written the name meanwhile, and have been forgotten (cluster/layout.h). */
static int check_move(void *ctx, const struct attr *current, struct error *err)
{
    const struct object_call *call = ctx;
    (void)current;
    return sender_knows_owners(call->req, err);
}

static int put_move_spec(struct object_call *call, struct object_put_spec *spec,
                         struct object_moved *moved, struct error *err)
{
    int code = parse_move(call, moved, err);
    spec->durability = DURABILITY_SYNC;
    spec->checksum = spec->expect != NULL ? spec->expect->type : CHECKSUM_NONE;
    spec->moved = moved;
    spec->condition = (struct object_condition){.check = check_move, .ctx = call};
    spec->job_id = http_header(call->req, HIDDEN_JOB_HEADER);
    if (spec->job_id != NULL)
        spec->condition = (struct object_condition){.check = hidden_check, .ctx = call->req};
    return code;
}

/* *durable, or call->rule. */
static int parse_copy(struct object_call *call, const struct checksum_value *sum, bool *durable,
                      struct error *err)
{
    const char *text = http_header(call->req, OBJECT_COPY_HEADER);
    int64_t length = http_content_length(call->req);
    if (text == NULL || length < 0)
        return error_set(err, E_INVALID, "a copy has a length and the header " OBJECT_COPY_HEADER);
    *durable = strcmp(text, OBJECT_COPY_DURABLE) == 0;
    call->rule = (struct copy_rule){.size = (uint64_t)length};
    if (sum != NULL)
        call->rule.checksum = *sum;
    if (*durable)
        return 0;
    int code = admit_parse_state_version(text, &call->rule.term, &call->rule.version, err);
    return code != 0 ? error_recode(err, E_INVALID, OBJECT_COPY_HEADER) : 0;
}

static int check_copy(void *ctx, const struct attr *current, struct error *err)
{
    struct object_call *call = ctx;
    int code = copies_are_several(call->bucket) ? 0 : object_call_check_owners(call, err);
    return code != 0 ? code : copy_rule_check(&call->rule, current, err);
}

static int put_copy_spec(struct object_call *call, struct object_put_spec *spec, struct error *err)
{
    bool durable = false;
    int code = parse_copy(call, spec->expect, &durable, err);
    if (code == 0)
        code = bucket_refuse_made(call->bucket, "copies", err);
    spec->pending = bucket_is_written_back(call->bucket);
    if (durable || spec->pending)
        spec->durability = DURABILITY_SYNC;
    if (!durable)
        spec->condition = (struct object_condition){.check = check_copy, .ctx = call};
    return code;
}

/* --- storing ---------------------------------------------------------------------------------- */

/* Of a bucket whose backend may have the last word the conditions are asked there (cold_write.c,
 * back_write.c). */
static bool asks_here(const struct object_call *call)
{
    return has_conditions(call->req) && !cold_writes_through(call) && !back_takes(call);
}

static int put_begin_with(struct object_call *call, const struct meta *meta,
                          struct object_put **put, struct error *err)
{
    const struct http_request *req = call->req;
    struct checksum_value sum;
    const struct checksum_value *expect;
    if (http_header(req, "Content-Range") != NULL) /* kept, a part would pass for the whole */
        return error_set(err, E_INVALID, "PUT stores whole objects: no Content-Range");
    int code = meta->err.code != 0 ? error_set(err, meta->err.code, "%s", meta->err.message)
                                   : parse_expected(req, &sum, &expect, err);
    if (code != 0)
        return code;
    int64_t length = http_content_length(req);
    struct object_put_spec spec = {
        .bucket_id = call->bucket->id,
        .name = call->name,
        .size = length >= 0 ? (uint64_t)length : OBJECT_SIZE_UNKNOWN,
        .durability = back_takes(call) ? DURABILITY_SYNC : call->bucket->props.durability,
        .checksum = call->bucket->props.checksum,
        .expect = expect,
        .content_type = http_header(req, "Content-Type"),
        .meta = meta->pairs.data,
        .meta_len = meta->pairs.len,
        .condition = {.check = asks_here(call) ? check_conditions : NULL, .ctx = call},
        .earlier = &call->earlier,
        .pending = back_takes(call),
    };
    struct object_moved moved;
    struct ec_manifest manifest;
    spec.slices = call->from_peer ? http_header(req, EC_MANIFEST_HEADER) : NULL;
    if (spec.slices != NULL && ec_manifest_parse(spec.slices, &manifest, err) != 0)
        return error_recode(err, E_INVALID, EC_MANIFEST_HEADER);
    if (call->from_peer && !is_stage(req))
        code = is_move(req) ? put_move_spec(call, &spec, &moved, err)
                            : put_copy_spec(call, &spec, err);
    if (code != 0)
        return code;
    if (copies_are_several(call->bucket) && spec.moved != NULL && spec.job_id == NULL)
        unsettled_mark(call->target->copies->unsettled, call->bucket->id, call->name,
                       &moved.version, clock_ms());
    if (!call->acts)
        return object_put_begin(call->target->store, &spec, put, err);
    call->condition = spec.condition;
    if (ec_upload_wanted(call))
        return ec_upload_begin(call, &spec, &call->ec, err);
    spec.condition = (struct object_condition){.check = NULL};
    code = object_put_begin(call->target->store, &spec, put, err);
    if (code == 0)
        code = copies_begin_put(call, spec.content_type, spec.meta, spec.meta_len, err);
    if (code != 0)
        object_put_abort(steal(*put));
    return code;
}

/* What the backend could not keep would be gone with the object's eviction.  What is moved or
 * staged has been looked at, and has the target's own names. */
static int check_meta(const struct object_call *call, const struct meta *meta, struct error *err)
{
    bool as_it_is = call->from_peer && (is_move(call->req) || is_stage(call->req));
    if (as_it_is || call->bucket->props.backend == NULL || meta->pairs.len == 0)
        return 0;
    return backend_meta_check(call->bucket->props.backend, meta->pairs.data, meta->pairs.len, err);
}

static int put_begin(struct object_call *call, struct object_put **put, struct error *err)
{
    int refused = call->from_peer ? 0 : bucket_refuse_write(call->bucket, "PUT", err);
    if (refused != 0)
        return refused;
    struct meta meta = {.pairs = BUF_INIT};
    http_each_header(call->req, collect_meta, &meta);
    call->acts =
        copies_are_several(call->bucket) && !(call->from_peer && object_is_copy(call->req));
    int code = check_meta(call, &meta, err);
    if (code == 0)
        code = put_begin_with(call, &meta, put, err);
    buf_done(&meta.pairs);
    return code;
}

static json_t *checksum_doc(const struct attr *a)
{
    char hex[2 * CHECKSUM_MAX + 1];
    checksum_hex(&a->checksum, hex);
    return json_pack("{ss ss}", "type", checksum_name(a->checksum.type), "value", hex);
}

static json_t *staged_doc(const struct attr *a)
{
    return json_pack("{sI so}", "size", (json_int_t)a->size, "checksum", checksum_doc(a));
}

static void reply_stored(const struct object_call *call, const struct attr *a)
{
    struct http_request *req = call->req;
    char version[VERSION_TEXT_MAX], etag[OBJECT_ETAG_MAX];
    version_format(&a->version, version);
    object_call_etag(call, a, etag);
    json_t *doc = staged_doc(a);
    json_object_set_new(doc, "version", json_string(version));
    json_object_set_new(doc, "etag", json_string(etag));
    http_reply_header(req, "ETag", etag);
    http_reply_json(req, 200, doc);
    json_decref(doc);
}

void object_reply_stored(const struct object_call *call, const struct attr *attr, const char *etag)
{
    if (attr != NULL) {
        reply_stored(call, attr);
        return;
    }
    json_t *doc = json_pack("{ss}", "etag", etag);
    if (*etag != '\0')
        http_reply_header(call->req, "ETag", etag);
    http_reply_json(call->req, 200, doc);
    json_decref(doc);
}

static void stored(void *arg, const struct attr *attr, const struct error *err)
{
    struct object_call *call = arg;
    log_set_request(http_request_id(call->req));
    struct error copy = *err;
    struct attr shown = attr != NULL ? *attr : (struct attr){.name = ""};
    if (attr != NULL && attr_is_pending(attr))
        back_note(call->target->back, call->bucket->id, call->name, attr->modified_ms);
    if (attr != NULL && ec_manifest_show(&shown, &copy) == 0)
        reply_stored(call, &shown);
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
        json_t *doc = staged_doc(object_put_attr(put));
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
        copies_put(u->target, call->bucket->id, call->name, steal(u->put), fan, &call->condition,
                   stored, call);
    else if (call->from_peer && is_stage(call->req))
        stage(call, steal(u->put));
    else if (cold_writes_through(call))
        cold_write_put(call, steal(u->put));
    else if (back_takes(call) && has_conditions(call->req))
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
    enum upload_state state = u->state;
    u->body_ended = true;
    pthread_mutex_unlock(&u->lock);
    if (state == UPLOAD_STORING)
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
    if (put_begin(call, put, &err) == 0)
        return true;
    fan_unref(steal(call->fan));
    ec_upload_abort(steal(call->ec));
    object_call_fail(call, "put", &err);
    return false;
}

/* A mover has asked them itself. */
static bool must_ask(const struct object_call *call)
{
    return !call->asked && !copies_are_several(call->bucket) &&
           !(call->from_peer && is_move(call->req)) &&
           earlier_is_asked(call->target, call->state, call->bucket, call->name, false);
}

/* The new version will be greater than any that a cut-off owner can still give: what it has need
 * not be known where nothing depends on it. */
static void ask_earlier(struct object_call *call, earlier_fn *fn, struct upload *u)
{
    bool may_skip = !call->from_peer && !has_conditions(call->req);
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
    u->fan = steal(call->fan);
    u->ec = steal(call->ec);
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
    bool ended = u->state == UPLOAD_STORING && u->body_ended;
    pthread_mutex_unlock(&u->lock);
    if (ended)
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
                         .fan = steal(call->fan),
                         .ec = steal(call->ec),
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
    call->from_peer = from_peer;
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
