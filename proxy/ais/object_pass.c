/* Both calls run in the client's loop, whose thread alone touches a pass after its start.
 *
 *   start ─▶ GET ── its head ──▶ PUT begins ──▶ both have ended ─▶ reply
 *             │ 307: the next target      │ the object was written meanwhile: start
 *             └ an error: reply           └ the call that fails first says why: its end of the pipe
 *                                           ends the other one */
#include "proxy/ais/object_pass.h"

#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "gateway/native_head.h"
#include "gateway/tags_head.h"
#include "gateway/target_call.h"
#include "net/client/client.h"
#include "proxy/http/relay.h"
#include "proxy/primary/proxy.h"

#define META "Dfc-Meta-"

enum { OVERTAKEN_MAX = 20 };

struct pass {
    struct proxy *proxy;
    struct http_request *req; /* parked: it ends after its reply */
    struct arena *arena;
    json_t *props;
    bool replaces;
    struct http_call read, write;
    struct bpipe *pipe;     /* between the two; NULL before the first */
    struct native_head put; /* the head of the PUT */
    unsigned hops, running; /* redirects of the read; calls that have not ended */
    unsigned overtaken;     /* so many times, by other writes */
    struct target_call_header *found;
    struct error err; /* the first failure */
};

static void pass_free(struct pass *c)
{
    relay_leave(c->proxy);
    json_decref(c->props);
    bpipe_unref(c->pipe);
    arena_free(c->arena);
    free(c);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void start_read(struct pass *c);

/* Of several writers at once, one gets on. */
static bool is_overtaken(struct pass *c)
{
    if (c->props == NULL || c->err.code != E_PRECONDITION)
        return false;
    if (c->overtaken++ < OVERTAKEN_MAX)
        return true;
    error_set(&c->err, E_NOT_READY, "the object is written all the time; send the request again");
    return false;
}

static void start_over(struct pass *c)
{
    c->err = ERROR_INIT;
    c->hops = 0;
    c->found = NULL;
    start_read(c);
}

static void call_ended(struct pass *c, const struct error *err)
{
    if (c->err.code == 0)
        c->err = *err;
    if (--c->running > 0)
        return;
    if (is_overtaken(c)) {
        start_over(c);
        return;
    }
    if (c->err.code != 0)
        proxy_reply_error(c->req, &c->err);
    else
        http_reply_empty(c->req, 200);
    pass_free(c);
}

/* --- the PUT ---------------------------------------------------------------------------------- */

/* The checksum was the source's: the caller has sent none. */
static void write_done(void *arg, struct http_result *result)
{
    struct pass *c = arg;
    struct error err = ERROR_INIT;
    if (target_call_error(result, c->write.url, &err) == E_CHECKSUM)
        error_recode(&err, E_CORRUPT, "the source has not the bytes that were stored");
    call_ended(c, &err);
}

/* Which of the source's headers the props leave. */
static bool is_left(const struct pass *c, const char *name)
{
    if (c->props == NULL || strncasecmp(name, META, strlen(META)) != 0)
        return true;
    const char *key;
    json_t *value;
    json_object_foreach(c->props, key, value)
    {
        if (strcasecmp(key, name + strlen(META)) == 0)
            return false;
    }
    return !c->replaces;
}

static void add_left(struct pass *c)
{
    for (const struct target_call_header *h = c->found; h != NULL; h = h->next) {
        struct target_call_header one = {.name = h->name, .value = h->value};
        if (is_left(c, h->name))
            native_head_content_of(&c->put, &one);
    }
}

static void add_props(struct pass *c)
{
    const char *key;
    json_t *value;
    json_object_foreach(c->props, key, value)
    {
        native_head_add(&c->put, arena_printf(c->arena, META "%s", key), json_string_value(value));
    }
}

static void add_as_it_is(struct pass *c, const char *from, const char *to)
{
    const char *value = target_call_header(c->found, from);
    if (value != NULL)
        native_head_add(&c->put, to, value);
}

/* One of the parts of an upload is computed anew, of the whole. */
static void add_sum(struct pass *c)
{
    struct s3_object_sum found;
    if (!native_head_sum(c->found, &found))
        return;
    const struct s3_sum_text sum = {.is_known = found.parts == 0, .value = found.value};
    native_head_add_sum(&c->put, &sum);
}

static void add_head(struct pass *c)
{
    native_head_begin(&c->put, c->arena);
    add_left(c);
    add_props(c);
    tags_head_add(&c->put, tags_head_of(c->found));
    add_as_it_is(c, "Dfc-Checksum-Type", "Dfc-Checksum-Type");
    add_as_it_is(c, "Dfc-Checksum-Value", "Dfc-Checksum-Value");
    add_sum(c);
    if (c->props != NULL) /* the version that was read; a backend may give none */
        add_as_it_is(c, "ETag", "If-Match");
}

static void start_write(struct pass *c, int64_t length)
{
    add_head(c);
    c->write.headers = c->put.lines;
    c->write.upload = length != 0 ? c->pipe : NULL;
    c->write.upload_length = length;
    c->write.once = length == 0; /* with bytes it cannot be repeated anyway */
    c->running++;
    http_call_start(c->proxy->data_client, &c->write, write_done, c);
}

/* --- the GET ---------------------------------------------------------------------------------- */

static void read_head(void *arg, const struct http_head *head)
{
    struct pass *c = arg;
    c->found = target_call_headers(c->arena, head);
    if (head->status == 200)
        start_write(c, head->content_length);
}

static void read_done(void *arg, struct http_result *result)
{
    struct pass *c = arg;
    struct error err = ERROR_INIT;
    const char *next = target_call_next(result, c->found, c->hops);
    if (next != NULL) {
        c->running--;
        c->hops++;
        c->read.url = next;
        start_read(c);
        return;
    }
    (void)target_call_error(result, c->read.url, &err);
    call_ended(c, &err);
}

static void start_read(struct pass *c)
{
    bpipe_unref(c->pipe); /* of a call that was sent on: nobody has it */
    c->pipe = bpipe_new(c->proxy->params.relay_buffer);
    c->read.download = c->pipe;
    c->running++;
    http_call_start(c->proxy->data_client, &c->read, read_done, c);
}

/* --- the start -------------------------------------------------------------------------------- */

static int put_url(struct pass *c, enum http_method method, const char *bucket, const char *object,
                   struct http_call *out, struct error *err)
{
    _cleanup_buf_ struct buf url = BUF_INIT;
    const struct target_call call = {.method = method, .bucket = bucket, .key = object};
    int code = target_call_url(c->req, c->proxy->gateway, &call, &url, err);
    if (code != 0)
        return code;
    *out = (struct http_call){.method = method,
                              .url = arena_strdup(c->arena, buf_str(&url)),
                              .to_public = true,
                              .request_id = arena_strdup(c->arena, http_request_id(c->req))};
    return 0;
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

void object_pass(struct http_request *req, const struct pass_spec *spec)
{
    struct proxy *p = http_user(req);
    struct error err = ERROR_INIT;
    if (!relay_enter(p, req))
        return;
    struct pass *c = xcalloc(1, sizeof *c);
    *c = (struct pass){.proxy = p,
                       .req = req,
                       .arena = arena_new(1024),
                       .props = json_incref(spec->props),
                       .replaces = spec->replaces};
    if (put_url(c, HTTP_GET, spec->bucket, spec->object, &c->read, &err) != 0 ||
        put_url(c, HTTP_PUT, spec->to_bucket, spec->to_object, &c->write, &err) != 0) {
        pass_free(c);
        http_reply_error(req, &err);
        return;
    }
    c->read.on_head = read_head;
    http_be_patient(req, always, NULL);
    start_read(c);
}
