#include "target/copies/hand_on.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "access/guard.h"
#include "cluster/members/location.h"
#include "cluster/placement/owners.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/semaphores.h"
#include "io/bpipe.h"
#include "io/file.h"
#include "io/reader.h"
#include "target/node/call.h"
#include "target/node/header_lines.h"
#include "target/node/reply.h"
#include "target/copies/copies.h"
#include "target/copies/commit.h"
#include "target/copies/hand_next.h"
#include "target/node/target.h"
#include "target/store/own_meta.h"
#include "target/node/write_path.h"

#define HANDED_HEADER "Dfc-Handed-On"

enum { TRIES_MAX = 20, PAUSE_MS = 50, PIECE = 256 << 10 };

/* Of one connection, or made by the client library. */
static const char *const not_passed[] = {
    "Connection", "Keep-Alive", "Proxy-Connection", "TE",     "Trailer",      "Transfer-Encoding",
    "Upgrade",    "Host",       "Content-Length",   "Expect", "X-Request-Id", HANDED_HEADER,
    NULL};

/* Headers of the reply that are given on. */
static const char *const given[] = {OBJECT_MD5_HEADER, OBJECT_SUM_HEADER, "Last-Modified"};

enum { GIVEN = sizeof given / sizeof given[0], GIVEN_VALUE_MAX = 95 };

struct handing {
    struct object_call *call;
    struct handed h;
    struct error why;
    struct bpipe *pipe; /* of the try under way, or NULL */
    sem_t over;
    struct http_result result;              /* of the try … */
    char given[GIVEN][GIVEN_VALUE_MAX + 1]; /* … and its headers of given[]; "": none */
    struct error err;
    bool in_doubt; /* it was sent, perhaps all of it, and no answer came */
};

int handed_take(struct handed *h, struct object_put *put, struct error *err)
{
    struct reader *reader = NULL;
    *h = (struct handed){.fd = -1};
    int code = object_put_finish(put, err);
    if (code == 0)
        code = object_put_share(put, &h->fd, &reader, err);
    reader_unref(reader); /* what has just been written is in memory */
    h->size = code == 0 ? object_put_attr(put)->size : 0;
    return code;
}

void handed_drop(struct handed *h)
{
    if (h->fd >= 0)
        close(h->fd);
    h->fd = -1;
}

/* --- the request ------------------------------------------------------------------------------ */

static void add_header(void *ctx, const char *name, const char *value)
{
    struct header_lines *l = ctx;
    for (size_t i = 0; not_passed[i] != NULL; i++) {
        if (strcasecmp(name, not_passed[i]) == 0)
            return;
    }
    header_lines_add(l, *value != '\0' ? arena_printf(l->arena, "%s: %s", name, value)
                                       : arena_printf(l->arena, "%s;", name)); /* curl's notation */
}

/* What an attempt is decided by. */
struct attempt {
    bool first;
    uint64_t map; /* in: of the attempt before, out: of this one */
    int failure;  /* of the one before */
    char *url;    /* out, of HAND_SEND */
};

/* By the state in force. */
static enum hand_next attempt_decide(const struct object_call *call, struct attempt *a)
{
    _cleanup_state_ const struct cluster_state *s = state_current(call->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, call->bucket->id);
    struct owners o = {.acting = NULL};
    struct buf url = BUF_INIT;
    if (b != NULL)
        owners_of(s, b, call->name, &o);
    const struct hand_view v = {.has_leader = o.acting != NULL && o.awaited == NULL,
                                .leader_is_self =
                                    o.acting != NULL && strcmp(o.acting->id, call->target->id) == 0,
                                .first = a->first,
                                .map_changed = s->smap.version != a->map,
                                .failure = a->failure};
    enum hand_next next = hand_next(&v);
    if (next != HAND_SEND)
        return next;
    location_put_target(&url, o.acting, s, b, call->name, http_raw_query(call->req));
    guard_put_own_proof(call->req, b->id, &url);
    a->url = buf_steal(&url);
    a->map = s->smap.version;
    return next;
}

static void keep_given(void *arg, const struct http_head *head)
{
    struct handing *x = arg;
    for (size_t i = 0; i < GIVEN; i++) {
        const char *value = head->header(head, given[i]);
        snprintf(x->given[i], sizeof x->given[i], "%s", value != NULL ? value : "");
    }
}

static void answered(void *arg, struct http_result *r)
{
    struct handing *x = arg;
    x->result = *r;
    *r = (struct http_result){.code = x->result.code};
    sem_post(&x->over);
}

/* What the receiver says counts, unless the file cannot be read. */
static int feed(const struct handing *x, struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(PIECE);
    int code = 0;
    for (uint64_t at = 0; code == 0 && at < x->h.size;) {
        uint64_t left = x->h.size - at;
        size_t len = left < PIECE ? (size_t)left : PIECE;
        code = file_pread_full(x->h.fd, piece, len, at, err);
        if (code == 0 && bpipe_write(x->pipe, piece, len, NULL) != 0)
            break;
        at += len;
    }
    bpipe_finish(x->pipe, code != 0 ? err : NULL);
    return code;
}

static int send_to(struct handing *x, const char *url, const char *const *lines)
{
    struct http_call call = {.method = HTTP_PUT,
                             .url = url,
                             .headers = lines,
                             .to_public = true,
                             .once = true,
                             .on_head = keep_given,
                             /* the leader copies the archive before it replies */
                             .stall_timeout_ms = x->call->put.appends ? HTTP_NO_STALL_TIMEOUT : 0,
                             .request_id = http_request_id(x->call->req)};
    struct error ours = ERROR_INIT;
    if (x->h.size > 0) {
        x->pipe = bpipe_new(PIECE);
        call.upload = x->pipe;
        call.upload_length = (int64_t)x->h.size;
    }
    http_result_done(&x->result);
    x->result = (struct http_result){0};
    http_call_start(x->call->target->data_client, &call, answered, x);
    int code = x->pipe != NULL ? feed(x, &ours) : 0;
    semaphore_wait(&x->over);
    bpipe_unref(x->pipe);
    x->pipe = NULL;
    x->err = ERROR_INIT;
    x->in_doubt = code == 0 && x->result.status == 0 && !x->result.not_sent;
    if (code != 0)
        return error_set(&x->err, code, "%s", ours.message);
    return http_result_error(&x->result, url, &x->err);
}

/* What the next attempt is decided by. */
static int failure_of(const struct handing *x)
{
    if (x->result.not_sent || x->result.status == 307)
        return E_STALE_MAP;
    return x->in_doubt ? E_IN_DOUBT : x->err.code;
}

static void reply(const struct handing *x)
{
    struct http_request *req = x->call->req;
    struct error err = x->result.status != 0 && x->result.status != 307 ? x->err : x->why;
    if (x->in_doubt)
        error_set(&err, E_IN_DOUBT, "it was sent on, and no answer came: %s", x->err.message);
    if (x->result.status == 200) {
        if (x->result.etag[0] != '\0')
            http_reply_header(req, "ETag", x->result.etag);
        for (size_t i = 0; i < GIVEN; i++) {
            if (x->given[i][0] != '\0')
                http_reply_header(req, given[i], x->given[i]);
        }
        http_reply_data(req, 200, "application/json", x->result.body.data, x->result.body.len);
    } else {
        object_call_fail(x->call, "put", &err);
    }
}

static void handing_free(struct handing *x)
{
    handed_drop(&x->h);
    http_result_done(&x->result);
    sem_destroy(&x->over);
    free(x);
}

static void send_until_over(struct handing *x, const char *const *lines)
{
    struct target *t = x->call->target;
    struct attempt a = {.first = true, .map = x->call->state->smap.version, .failure = x->why.code};
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        copies_refresh(t);
        a.url = NULL;
        enum hand_next next = attempt_decide(x->call, &a);
        _cleanup_free_ char *url = a.url;
        if (next == HAND_STOP || (next == HAND_SEND && send_to(x, url, lines) == 0))
            break;
        if (next == HAND_SEND) {
            a.first = false;
            a.failure = failure_of(x);
        }
        if (!job_stop_pause(&t->copies->stop, PAUSE_MS))
            break;
    }
}

static void hand_on_run(void *arg)
{
    struct handing *x = arg;
    struct header_lines l;
    header_lines_begin(&l);
    log_set_request(http_request_id(x->call->req));
    http_each_header(x->call->req, add_header, &l);
    header_lines_add(&l, HANDED_HEADER ": 1");
    send_until_over(x, l.lines);
    header_lines_end(&l);
    reply(x);
    log_set_request(NULL);
    handing_free(x);
}

/* It was sent on before; or it is a ring's head: the next leader is the next keeper, which decides
 * anew. */
static bool stays(const struct object_call *call)
{
    return http_header(call->req, HANDED_HEADER) != NULL || call->bucket->props.ring_cap > 0;
}

bool hand_on_is_of_use(const struct object_call *call, const struct error *why)
{
    struct attempt a = {.first = true, .map = call->state->smap.version, .failure = why->code};
    if (stays(call))
        return false;
    copies_refresh(call->target);
    bool of_use = attempt_decide(call, &a) != HAND_STOP;
    free(a.url);
    return of_use;
}

void hand_on(struct object_call *call, struct handed *h, const struct error *why)
{
    struct handing *x = xcalloc(1, sizeof *x);
    struct error err = *why;
    *x = (struct handing){.call = call, .h = *h, .why = *why};
    *h = (struct handed){.fd = -1};
    sem_init(&x->over, 0, 0);
    if (!stays(call) && pool_submit(call->target->handers, hand_on_run, x, &err) == 0)
        return;
    object_call_fail(call, "put", &err);
    handing_free(x);
}

/* --- a PUT that another target leads ---------------------------------------------------------- */

static bool takes_passed(const struct object_call *call)
{
    return call->put.passes;
}

static void commit_passed(struct object_call *call, struct write_parts *parts)
{
    struct handed h;
    struct error err = ERROR_INIT, why = ERROR_INIT;
    if (handed_take(&h, parts->put, &err) == 0) {
        error_set(&why, E_STALE_MAP, "object '%s' is written through another owner", call->name);
        hand_on(call, &h, &why);
    } else {
        object_call_fail(call, "put", &err);
    }
    object_put_abort(parts->put);
}

const struct write_path passed_path = {.name = "passed on",
                                       .sees_to_owners = true,
                                       .takes = takes_passed,
                                       .open = write_open_here,
                                       .commit = commit_passed};
