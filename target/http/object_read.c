/* GET and HEAD.  The way of a hot object: open, fgetxattr, fstat, and then the file goes out.  What
 * of it is not in memory is left to the readers of its disk (io/reader.h), who open it, or fetch
 * its bytes, while the connection sleeps: no HTTP thread waits for a disk.
 *
 * With verify_on_read whole objects pass through their checksum first: a small one is read, checked
 * and sent; of a large one the last piece is held back until the checksum is right, so that a
 * damaged object cannot look complete.  Where there are several copies a damaged one is replaced by
 * another owner's: a small object's before it is sent, a large one's for the next who asks. */
#include "target/http/object_routes.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "ais/dialect.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/reader.h"
#include "target/node/reply.h"
#include "target/archive/member_read.h"
#include "target/http/ais_headers.h"
#include "target/http/object_digest.h"
#include "target/node/call.h"
#include "target/copies/copies.h"
#include "target/cold/fresh.h"
#include "target/copies/earlier_owners.h"
#include "target/format/ec_manifest.h"
#include "target/slices/read.h"
#include "target/node/miss.h"
#include "target/node/read_count.h"
#include "target/node/read_range.h"
#include "target/copies/repair_wanted.h"
#include "target/node/target.h"

/* Beside OBJECT_WAITS: what is here is damaged, and a good copy can be had. */
enum { OBJECT_DOUBTED = OBJECT_WAITS + 1 };

/* --- headers ---------------------------------------------------------------------------------- */

static void put_validators(const struct object_call *call, const struct attr *a, const char *etag)
{
    char date[32];
    object_reply_tags(call, a, etag);
    http_reply_header(call->req, "Last-Modified", clock_format_http(a->modified_ms / 1000, date));
}

static const char *content_type(const struct attr *a)
{
    return a->content_type != NULL ? a->content_type : "application/octet-stream";
}

static void put_headers(const struct object_call *call, const struct attr *a)
{
    struct http_request *req = call->req;
    char version[VERSION_TEXT_MAX], hex[2 * CHECKSUM_MAX + 1];
    checksum_hex(&a->checksum, hex);
    http_reply_header(req, "Accept-Ranges", "bytes");
    http_reply_header(req, "Dfc-Version", version_format(&a->version, version));
    http_reply_header(req, "Dfc-Checksum-Type", checksum_name(a->checksum.type));
    http_reply_header(req, "Dfc-Checksum-Value", hex);
    object_reply_meta(req, a, call->read.holder);
    if (ais_speaks(req))
        ais_headers_put(call, a);
}

/* --- verify_on_read --------------------------------------------------------------------------- */

/* A large object on its way through its checksum, piece by piece: each is fetched by the reader
 * first where it is not in memory.  The stream's, and while it fetches the reader's, too. */
struct verified {
    struct http_request *req;
    struct target *target;
    uint64_t bucket_id;
    char *name;
    struct reader *reader;
    int fd;
    uint64_t at, size;
    uint64_t fetched; /* in memory up to here */
    struct checksum *running;
    struct checksum_value want;
    pthread_mutex_t lock; /* guards what follows */
    unsigned refs;
    bool gone; /* the stream has ended */
    bool fetching;
    struct error err;
};

static void verified_unref(struct verified *v)
{
    pthread_mutex_lock(&v->lock);
    bool last = --v->refs == 0;
    pthread_mutex_unlock(&v->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&v->lock);
    close(v->fd);
    reader_unref(v->reader);
    checksum_free(v->running);
    free(v->name);
    free(v);
}

static void verified_free(void *ctx)
{
    struct verified *v = ctx;
    pthread_mutex_lock(&v->lock);
    v->gone = true;
    pthread_mutex_unlock(&v->lock);
    verified_unref(v);
}

static struct verified *verified_new(const struct object_call *call, const struct object *o,
                                     struct reader *reader)
{
    struct verified *v = xcalloc(1, sizeof *v);
    *v = (struct verified){.req = call->req,
                           .target = call->target,
                           .bucket_id = call->bucket->id,
                           .name = xstrdup(call->name),
                           .reader = reader_ref(reader),
                           .fd = o->fd,
                           .size = o->attr.size,
                           .running = checksum_new(o->attr.checksum.type),
                           .want = o->attr.checksum,
                           .refs = 1};
    pthread_mutex_init(&v->lock, NULL);
    return v;
}

/* The next piece, checked when it is the last. */
static int verified_next(struct verified *v, char *out, size_t len, struct error *err)
{
    int code = reader_pread(v->reader, v->fd, out, len, v->at, err);
    if (code != 0)
        return code;
    checksum_update(v->running, out, len);
    v->at += len;
    if (v->at < v->size)
        return 0;
    struct checksum_value got;
    checksum_final(v->running, &got);
    if (checksum_equal(&got, &v->want))
        return 0;
    metric_add(metric_get(M_checksum_errors_total, NULL), 1);
    repair_wanted(v->target, v->bucket_id, v->name);
    return error_set(err, E_CORRUPT, "object '%s' does not have its checksum any more", v->name);
}

static size_t verified_piece(const struct verified *v)
{
    uint64_t left = v->size - v->at;
    return left < READER_PIECE_BYTES ? (size_t)left : READER_PIECE_BYTES;
}

/* In a reader's thread; `at` stays meanwhile. */
static void verified_fetch(void *arg)
{
    struct verified *v = arg;
    struct error err = ERROR_INIT;
    size_t len = verified_piece(v);
    reader_fetch(v->reader, v->fd, v->at, len, &err);
    pthread_mutex_lock(&v->lock);
    v->fetched = v->at + len;
    v->fetching = false;
    v->err = err;
    if (!v->gone)
        http_wake(v->req);
    pthread_mutex_unlock(&v->lock);
    verified_unref(v);
}

static void verified_begin_fetch(struct verified *v, struct error *err)
{
    pthread_mutex_lock(&v->lock);
    v->refs++;
    v->fetching = true;
    pthread_mutex_unlock(&v->lock);
    if (reader_submit(v->reader, verified_fetch, v, err) != 0)
        verified_unref(v); /* the stream is cut */
}

/* How much can be read now; 0: the reader is at it, or it could not be (err). */
static size_t verified_ready(struct verified *v, struct error *err)
{
    pthread_mutex_lock(&v->lock);
    bool fetching = v->fetching;
    *err = v->err;
    pthread_mutex_unlock(&v->lock);
    if (fetching || err->code != 0)
        return 0;
    if (v->at < v->fetched)
        return (size_t)(v->fetched - v->at);
    size_t len = verified_piece(v);
    if (!reader_has(v->reader, v->fd, v->at, len)) {
        verified_begin_fetch(v, err);
        return 0;
    }
    v->fetched = v->at + len;
    return len;
}

static ssize_t verified_read(void *ctx, char *out, size_t max)
{
    struct verified *v = ctx;
    struct error err = ERROR_INIT;
    if (v->at == v->size)
        return HTTP_STREAM_END;
    size_t len = verified_ready(v, &err);
    if (len > max)
        len = max;
    if (err.code == 0 && (len == 0 || verified_next(v, out, len, &err) == 0))
        return (ssize_t)len;
    log_error("object cut off", lerr(&err));
    return HTTP_STREAM_CUT;
}

static void put_object_headers(const struct object_call *call, const struct attr *a)
{
    put_headers(call, a);
    if (a->slices != NULL && call->read.holder)
        http_reply_header(call->req, EC_MANIFEST_HEADER, a->slices);
    http_reply_header(call->req, "Content-Type", content_type(a));
}

static void reply_verified_stream(const struct object_call *call, const struct object *o,
                                  struct reader *reader)
{
    static const struct http_stream_ops ops = {.read = verified_read, .free = verified_free};
    struct verified *v = verified_new(call, o, reader);
    put_object_headers(call, &o->attr);
    http_reply_stream(call->req, 200, (int64_t)v->size, &ops, v);
}

/* Whoever calls may wait for the disk, or knows that the object is in memory.  The descriptor is
 * given away; the caller's to free, or NULL. */
static char *read_verified(const struct object_call *call, const struct object *o,
                           struct reader *reader, struct error *err)
{
    struct verified *v = verified_new(call, o, reader);
    _cleanup_free_ char *data = xmalloc(v->size + 1);
    int code = verified_next(v, data, v->size, err);
    verified_free(v);
    return code == 0 ? steal(data) : NULL;
}

static void reply_whole(const struct object_call *call, const struct attr *a, const char *data)
{
    put_headers(call, a);
    http_reply_data(call->req, 200, content_type(a), data, a->size);
}

/* --- GET -------------------------------------------------------------------------------------- */

/* Range is GET's alone: to HEAD it means nothing. */
static int pick_range(const struct object_call *call, const struct attr *a, const char *etag,
                      struct read_range *range, struct error *err)
{
    bool get = http_method(call->req) == HTTP_GET;
    const struct read_question q = {.range = get ? http_header(call->req, "Range") : NULL,
                                    .if_range = http_header(call->req, "If-Range"),
                                    .offset = http_query(call->req, "offset"),
                                    .length = http_query(call->req, "length"),
                                    .size = a->size,
                                    .etag = etag,
                                    .md5 = object_call_md5(call, a)};
    return read_range_pick(&q, range, err);
}

static void put_content_range(struct http_request *req, const struct read_range *range,
                              uint64_t size)
{
    char text[80];
    if (range != NULL)
        snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)range->offset,
                 (unsigned long long)(range->offset + range->length - 1), (unsigned long long)size);
    else
        snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)size);
    http_reply_header(req, "Content-Range", text);
}

/* Takes the reader over, too. */
static void reply_bytes(const struct object_call *call, const struct object *o,
                        const struct read_range *range, struct reader *reader)
{
    put_object_headers(call, &o->attr);
    if (range->status == 206)
        put_content_range(call->req, range, o->attr.size);
    http_reply_file(call->req, range->status, o->fd, range->offset, range->length, reader);
}

/* Is it to be checked on its way out? */
static bool is_verified(const struct object_call *call, const struct attr *a,
                        const struct read_range *range)
{
    return http_method(call->req) == HTTP_GET && range->status == 200 &&
           call->bucket->props.verify_on_read && a->checksum.type != CHECKSUM_NONE &&
           a->slices == NULL; /* each of their blocks is checked */
}

/* A small object is read whole before its reply begins. */
static bool is_verified_whole(const struct object_call *call, const struct attr *a,
                              const struct read_range *range)
{
    return is_verified(call, a, range) && a->size <= call->target->params.put_buffer;
}

/* A small object that is checked: its bytes, or an answer to its damage. */
static int reply_checked(struct object_call *call, const struct object *o, const char *etag,
                         struct reader *reader)
{
    struct error err = ERROR_INIT;
    _cleanup_free_ char *data = read_verified(call, o, reader, &err);
    if (data == NULL && err.code == E_CORRUPT && copies_may_mend(call)) {
        call->read.doubted = true;
        return OBJECT_DOUBTED;
    }
    if (data == NULL) {
        object_call_fail(call, "get", &err);
        return 0;
    }
    put_validators(call, &o->attr, etag);
    reply_whole(call, &o->attr, data);
    return 0;
}

static void put_slices_head(const struct object_call *call, const struct attr *a,
                            const struct read_range *range)
{
    char etag[OBJECT_ETAG_MAX];
    object_call_etag(call, a, etag);
    put_validators(call, a, etag);
    put_object_headers(call, a);
    if (range->status == 206)
        put_content_range(call->req, range, a->size);
}

static void reply_slices(struct object_call *call, const struct object *o,
                         const struct read_range *range, const struct reader *reader)
{
    object_read_count(call, range->length, reader);
    close(o->fd);
    ec_read_reply(call, o, range, put_slices_head);
}

/* The descriptor in `o` is given away, or closed, and the reader given away or left.  OBJECT_WAITS,
 * OBJECT_DOUBTED: nothing was replied. */
static int reply_object(struct object_call *call, const struct object *o, struct reader **reader)
{
    const struct attr *a = &o->attr;
    char etag[OBJECT_ETAG_MAX];
    if (object_call_wants_members(call)) {
        member_read_reply(call, o, reader);
        return 0;
    }
    if (object_digest_is_wanted(call)) {
        object_digest_reply(call, o, *reader);
        return 0;
    }
    object_call_etag(call, a, etag);
    struct error err = ERROR_INIT;
    struct read_range range;
    int code = object_call_check_conditions(call, http_method(call->req), a, &err);
    if (code == 0)
        code = pick_range(call, a, etag, &range, &err);
    if (code == 0 && is_verified_whole(call, a, &range) && !reader_may_wait() &&
        !reader_has(*reader, o->fd, 0, a->size)) {
        close(o->fd);
        return OBJECT_WAITS;
    }
    if (code == 0 && a->slices != NULL && !call->read.holder) {
        reply_slices(call, o, &range, *reader);
        return 0;
    }
    if (code == 0 && is_verified_whole(call, a, &range)) {
        object_read_count(call, range.length, *reader);
        return reply_checked(call, o, etag, *reader);
    }
    if (code == 0 || code == E_NOT_MODIFIED)
        put_validators(call, a, etag);
    if (code == E_NOT_MODIFIED)
        object_reply_kept(call->req, a);
    if (code == E_RANGE)
        put_content_range(call->req, NULL, a->size);
    if (code != 0) {
        close(o->fd);
        object_call_fail(call, "get", &err);
        return 0;
    }
    object_read_count(call, range.length, *reader);
    if (is_verified(call, a, &range))
        reply_verified_stream(call, o, *reader);
    else
        reply_bytes(call, o, &range, steal(*reader));
    return 0;
}

/* In a reader's thread: once more, and now with patience. */
static void serve_waiting(void *arg)
{
    struct object_call *call = arg;
    log_set_request(http_request_id(call->req));
    object_read_serve(call);
    log_set_request(NULL);
}

/* Is what was opened to be compared with the backend's?  Then it is closed, and the call goes on
 * when the answer is there. */
static bool is_validated_first(struct object_call *call, const struct object *o)
{
    if (!cold_fresh_is_due(call, &o->attr))
        return false;
    close(o->fd);
    cold_fresh_ask(call, &o->attr);
    return true;
}

/* Another owner that asks may want this version alone (read_through.h). */
static int check_wanted(const struct object_call *call, struct object *o, struct error *err)
{
    struct version wanted;
    const char *text = http_header(call->req, "Dfc-Version");
    if (!call->read.holder || text == NULL ||
        (version_parse(text, &wanted, NULL) == 0 &&
         version_compare(&wanted, &o->attr.version) == 0))
        return 0;
    close(steal_fd(&o->fd));
    return error_set(err, E_OBJECT_NOT_FOUND, "object '%s' is not here as %s", call->name, text);
}

/* As users see it. */
static int show(struct object *o, struct error *err)
{
    int code = ec_manifest_show(&o->attr, err);
    if (code != 0)
        close(steal_fd(&o->fd));
    return code;
}

/* Who reads needs no room, and is told of none. */
static void fail(const struct object_call *call, struct error *err)
{
    if (err->code == E_NO_SPACE)
        error_recode(err, E_NODE_UNREACHABLE, "no other owner gives it");
    object_call_fail(call, "get", err);
}

static void serve_here(struct object_call *call)
{
    struct object o;
    struct reader *reader;
    struct error err = ERROR_INIT;
    int code = object_open_for(call->target->store, call->bucket->id, call->name, reader_may_wait(),
                               &o, &reader, &err);
    if (copies_must_ask(call, &o, code)) {
        if (o.fd >= 0)
            close(o.fd);
        reader_unref(reader);
        copies_ask(call, code, serve_here);
        return;
    }
    if (code == 0)
        code = check_wanted(call, &o, &err);
    if (code == 0 && (!call->read.holder || object_call_wants_made(call)))
        code = show(&o, &err);
    if (code == 0 && !is_validated_first(call, &o))
        code = reply_object(call, &o, &reader);
    if (code == OBJECT_DOUBTED) {
        reader_unref(reader);
        copies_ask(call, code, serve_here);
        return;
    }
    if (code == OBJECT_WAITS)
        code = reader_submit(reader, serve_waiting, call, &err);
    if (code == E_OBJECT_NOT_FOUND && !call->read.holder)
        miss_begin(call);
    else if (code != 0)
        fail(call, &err);
    reader_unref(reader);
}

void object_read_serve(struct object_call *call)
{
    if (!call->read.holder && earlier_must_be_asked(call, true))
        earlier_serve(call, serve_here);
    else
        serve_here(call);
}

/* An object may be a page that somebody wrote: shown by a browser it must not act as its reader, in
 * the origin of all these calls.  With an error, too: what it quotes is somebody's. */
static void put_sandbox(struct http_request *req)
{
    http_reply_constant(req, "X-Content-Type-Options", "nosniff");
    http_reply_constant(req, "Content-Security-Policy", "sandbox; default-src 'none'");
}

/* All bytes are read before its reply. */
static bool is_digesting(void *ctx)
{
    (void)ctx;
    return true;
}

static void be_patient(struct http_request *req)
{
    if (http_query(req, "digest") != NULL)
        http_be_patient(req, is_digesting, NULL);
}

void object_read_begin(struct http_request *req)
{
    const struct target *t = http_user(req);
    be_patient(req);
    if (t->params.object_sandbox)
        put_sandbox(req);
    object_call_run(req, object_read_serve);
}

void object_peer_read_begin(struct http_request *req)
{
    object_call_run(req, object_read_serve);
}

void object_hold_begin(struct http_request *req)
{
    struct object_call *call = object_call_new(req);
    be_patient(req);
    call->read.holder = true;
    object_call_start(call, object_read_serve);
}
