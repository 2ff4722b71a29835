#include "target/copies/hand_on.h"

#include <semaphore.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cluster/location.h"
#include "cluster/owners.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "io/bpipe.h"
#include "io/file.h"
#include "io/reader.h"
#include "target/node/call.h"
#include "target/copies/copies.h"
#include "target/copies/commit.h"
#include "target/node/target.h"

#define HOPS_HEADER "Dfc-Handed-On"

enum { HOPS_MAX = 4, AGAIN_MAX = 2, TRIES_MAX = 20, PAUSE_MS = 50, PIECE = 256 << 10 };

/* Of one connection, or made by the client library. */
static const char *const not_passed[] = {
    "Connection", "Keep-Alive", "Proxy-Connection", "TE",     "Trailer",      "Transfer-Encoding",
    "Upgrade",    "Host",       "Content-Length",   "Expect", "X-Request-Id", HOPS_HEADER,
    NULL};

struct handing {
    struct object_call *call;
    struct handed h;
    struct error why;
    uint64_t hops;
    struct bpipe *pipe; /* of the try under way, or NULL */
    sem_t over;
    struct http_result result; /* of the try */
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

struct lines {
    struct arena *arena;
    const char **lines;
    size_t count, room;
};

static void add_line(struct lines *l, const char *line)
{
    if (l->count + 1 >= l->room) {
        l->room = l->room > 0 ? 2 * l->room : 32;
        l->lines = xrealloc(l->lines, l->room * sizeof *l->lines);
    }
    l->lines[l->count++] = line;
    l->lines[l->count] = NULL;
}

static void add_header(void *ctx, const char *name, const char *value)
{
    struct lines *l = ctx;
    for (size_t i = 0; not_passed[i] != NULL; i++) {
        if (strcasecmp(name, not_passed[i]) == 0)
            return;
    }
    add_line(l, *value != '\0' ? arena_printf(l->arena, "%s: %s", name, value)
                               : arena_printf(l->arena, "%s;", name)); /* curl's notation */
}

/* Where the owner is that acts by the state in force; NULL: nowhere. */
static char *where_now(const struct handing *x)
{
    const struct object_call *call = x->call;
    _cleanup_state_ const struct cluster_state *s = state_current(call->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, call->bucket->id);
    struct owners o;
    struct buf url = BUF_INIT;
    if (b == NULL)
        return NULL;
    owners_of(s, b, call->name, &o);
    if (o.acting == NULL || o.awaited != NULL)
        return NULL;
    location_put_target(&url, o.acting, s, b, call->name, http_raw_query(call->req));
    return buf_steal(&url);
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
    while (sem_wait(&x->over) != 0)
        ; /* EINTR is the only failure of an initialised semaphore */
    bpipe_unref(x->pipe);
    x->pipe = NULL;
    x->err = ERROR_INIT;
    x->in_doubt = code == 0 && x->result.status == 0 && !x->result.not_sent;
    if (code != 0)
        return error_set(&x->err, code, "%s", ours.message);
    return http_result_error(&x->result, url, &x->err);
}

/* Was it refused for certain, by one who does not act (yet)? */
static bool may_be_tried_again(const struct handing *x)
{
    return x->result.not_sent || x->result.status == 307 || x->err.code == E_STALE_MAP ||
           x->err.code == E_NOT_READY;
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

static void hand_on_run(void *arg)
{
    struct handing *x = arg;
    struct target *t = x->call->target;
    struct lines l = {.arena = arena_new(1024)};
    log_set_request(http_request_id(x->call->req));
    http_each_header(x->call->req, add_header, &l);
    add_line(&l, arena_printf(l.arena, HOPS_HEADER ": %llu", (unsigned long long)x->hops + 1));
    for (unsigned i = 0; i < TRIES_MAX; i++) {
        copies_refresh(t);
        _cleanup_free_ char *url = where_now(x);
        if (url == NULL || send_to(x, url, l.lines) == 0 || !may_be_tried_again(x))
            break;
        if (!job_stop_pause(&t->copies->stop, PAUSE_MS))
            break;
    }
    free(l.lines);
    arena_free(l.arena);
    reply(x);
    log_set_request(NULL);
    handing_free(x);
}

void hand_on(struct object_call *call, struct handed *h, const struct error *why)
{
    const char *hops = http_header(call->req, HOPS_HEADER);
    struct handing *x = xcalloc(1, sizeof *x);
    struct error err = *why;
    *x = (struct handing){.call = call, .h = *h, .why = *why};
    *h = (struct handed){.fd = -1};
    sem_init(&x->over, 0, 0);
    uint64_t max = why->code == E_STALE_MAP ? HOPS_MAX : AGAIN_MAX;
    bool few = hops == NULL || (parse_u64(hops, &x->hops, NULL) == 0 && x->hops < max);
    if (few && pool_submit(call->target->handers, hand_on_run, x, &err) == 0)
        return;
    object_call_fail(call, "put", &err);
    handing_free(x);
}
