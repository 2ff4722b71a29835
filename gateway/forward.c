/* Who replies: the target's answer to a read comes in the request's HTTP thread, or as all others
 * in the loop's, while the client may still send.
 * Until the body is over only the request's own HTTP thread may touch the request, since the client
 * can vanish at any moment.  So the answer is kept, and whoever comes second replies: the loop, or
 * the HTTP thread at the next piece of the body or at its end.  `lock` decides; `req` is NULL once
 * it has been replied to, or is gone. */
#include "gateway/forward.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/mem.h"
#include "common/parse.h"
#include "gateway/body.h"
#include "gateway/reply.h"
#include "io/bpipe.h"
#include "io/loop.h"
#include "net/client/client.h"
#include "net/direct/direct.h"
#include "net/http/pipe.h"

struct forward {
    struct gateway *gateway;
    const struct gateway_call *s3; /* the request's */
    struct forward_plan plan;
    atomic_uint refs;    /* the request's, the call's, that of a message to the loop */
    struct arena *arena; /* what the call is given, and the headers of the reply */
    struct http_call call;
    unsigned hops;
    struct bpipe *upload; /* NULL: there is nothing to send */
    uint64_t sent;        /* bytes of the object that are in the pipe */
    char last;            /* the last byte of the object */
    bool is_unwanted;     /* the target takes no more: its answer is the reply */
    pthread_mutex_t lock; /* of what follows; nothing that waits is called under it */
    struct http_request *req;
    bool body_over;
    bool answered;
    struct forward_reply reply;
};

static void forward_unref(struct forward *f)
{
    if (atomic_fetch_sub(&f->refs, 1) != 1)
        return;
    gateway_leave_forward(f->gateway);
    body_free(f->plan.body);
    bpipe_unref(f->upload);
    bpipe_unref(f->reply.pipe);
    buf_done(&f->reply.text);
    pthread_mutex_destroy(&f->lock);
    arena_free(f->arena);
    free(f);
}

/* --- the reply -------------------------------------------------------------------------------- */

/* With the lock held. */
static void reply_if_due(struct forward *f, bool in_http_thread)
{
    struct http_request *req = f->req;
    if (req == NULL || !f->answered || !(f->body_over || in_http_thread))
        return;
    f->req = NULL;
    f->plan.reply(req, f->s3, &f->reply);
}

static bool is_read(const struct forward *f)
{
    return f->plan.method == HTTP_GET || f->plan.method == HTTP_HEAD;
}

int64_t forward_reply_total(const struct forward_reply *r)
{
    const char *range = target_call_header(r->headers, "Content-Range");
    const char *slash = range != NULL ? strchr(range, '/') : NULL;
    uint64_t total;
    if (r->status != 206)
        return r->length;
    return slash != NULL && parse_u64(slash + 1, &total, NULL) == 0 ? (int64_t)total : -1;
}

/* Of this target's own reply they are there already. */
void forward_reply_bytes(struct http_request *req, int status, const struct forward_reply *r)
{
    if (r->direct != NULL)
        direct_reply(r->direct, status);
    else if (r->pipe != NULL)
        http_reply_pipe(req, status, r->length, r->pipe);
    else
        http_reply_as_it_is(req, status);
}

/* --- the target's side, in its thread --------------------------------------------------------- */

static void take_head(struct forward *f, const struct http_head *head)
{
    f->reply.headers = target_call_headers(f->arena, head);
    f->reply.status = head->status;
    f->reply.length = head->content_length;
}

static void answer(struct forward *f)
{
    pthread_mutex_lock(&f->lock);
    f->answered = true;
    reply_if_due(f, false);
    pthread_mutex_unlock(&f->lock);
}

static void call_start(struct forward *f);

static bool is_sent_on(struct forward *f, const struct http_result *result)
{
    const char *next =
        f->upload == NULL ? target_call_next(result, f->reply.headers, f->hops) : NULL;
    if (next == NULL)
        return false;
    f->hops++;
    f->call.url = next;
    call_start(f);
    return true;
}

/* A read's bytes follow; all other replies are whole when the call is done. */
static void call_head(void *arg, const struct http_head *head)
{
    struct forward *f = arg;
    take_head(f, head);
    if (is_read(f) && head->status >= 200 && head->status <= 299)
        answer(f);
}

static void call_done(void *arg, struct http_result *result)
{
    struct forward *f = arg;
    struct direct_reader *reader = gateway_config_of(f->gateway)->direct;
    if (is_read(f) && reader != NULL && result->code == 0)
        direct_learn(reader, f->call.url, result->peer);
    if (f->answered) { /* written by this thread alone */
        forward_unref(f);
        return;
    }
    if (is_sent_on(f, result))
        return;
    if (target_call_error(result, f->call.url, &f->reply.err) == 0)
        buf_append(&f->reply.text, result->body.data, result->body.len);
    answer(f);
    forward_unref(f);
}

static void direct_head(void *arg, const struct http_head *head)
{
    take_head(arg, head);
}

static void direct_done(void *arg, struct http_result *result, struct direct *direct)
{
    struct forward *f = arg;
    if (is_sent_on(f, result))
        return;
    (void)target_call_error(result, f->call.url, &f->reply.err);
    f->reply.direct = direct;
    answer(f);
    forward_unref(f);
}

static void read_by_client(struct forward *f)
{
    const struct gateway_config *config = gateway_config_of(f->gateway);
    bpipe_unref(f->reply.pipe); /* of a call that was sent on: nobody has it */
    f->call.download = f->reply.pipe = bpipe_new(config->buffer_bytes);
    http_call_start(config->client, &f->call, call_done, f);
}

static void direct_elsewhere(void *arg)
{
    read_by_client(arg);
}

/* `req` stays until it has been replied to. */
static void read_directly(struct forward *f, struct direct_reader *reader)
{
    const struct direct_call call = {.method = f->call.method,
                                     .url = f->call.url,
                                     .headers = f->call.headers,
                                     .head = direct_head,
                                     .done = direct_done,
                                     .elsewhere = direct_elsewhere,
                                     .arg = f};
    direct_start(reader, f->req, &call);
}

static void call_start(struct forward *f)
{
    const struct gateway_config *config = gateway_config_of(f->gateway);
    if (!is_read(f))
        http_call_start(config->client, &f->call, call_done, f);
    else if (config->direct != NULL && direct_takes(f->req, f->call.url))
        read_directly(f, config->direct);
    else
        read_by_client(f);
}

/* --- the client's side, in the HTTP thread ---------------------------------------------------- */

static void cut_upload(struct forward *f, const char *why)
{
    struct error cut;
    error_set(&cut, E_CANCELLED, "%s", why);
    if (f->upload == NULL)
        return;
    bpipe_on_space(f->upload, NULL, NULL); /* nobody waits for it any more */
    bpipe_finish(f->upload, &cut);
}

/* The body is not what the request says: the target gets no whole one. */
static void refuse_body(struct forward *f, const struct s3_failure *why)
{
    cut_upload(f, why->message);
    pthread_mutex_lock(&f->lock);
    struct http_request *req = f->req;
    f->req = NULL;
    f->body_over = true;
    pthread_mutex_unlock(&f->lock);
    if (req != NULL)
        gateway_fail(req, why);
}

static bool is_answered(struct forward *f)
{
    pthread_mutex_lock(&f->lock);
    reply_if_due(f, true);
    bool answered = f->req == NULL;
    pthread_mutex_unlock(&f->lock);
    return answered;
}

/* Bytes of the object into the pipe, but for the last one. */
static ssize_t put_bytes(void *ctx, const char *data, size_t len)
{
    struct forward *f = ctx;
    uint64_t before_last = body_length(f->plan.body) - 1 - f->sent;
    if (before_last == 0) {
        f->last = data[0];
        return 1;
    }
    ssize_t taken =
        bpipe_try_write(f->upload, data, len < before_last ? len : (size_t)before_last, NULL);
    if (taken > 0)
        f->sent += (uint64_t)taken;
    return taken == BPIPE_AGAIN ? BODY_SINK_FULL : taken < 0 ? BODY_SINK_CLOSED : taken;
}

/* How much was taken.  What has no room in the pipe comes again. */
static size_t pass_on(struct forward *f, const char *data, size_t len)
{
    const struct body_sink pipe = {.put = put_bytes, .ctx = f};
    struct s3_failure why;
    size_t taken;
    enum body_outcome o = body_pass(f->plan.body, &pipe, data, len, &taken, &why);
    f->is_unwanted = o == BODY_UNWANTED;
    if (o == BODY_WRONG)
        refuse_body(f, &why);
    return taken;
}

static size_t body_data(struct http_request *req, void *ctx, const char *data, size_t len)
{
    (void)req;
    struct forward *f = ctx;
    return is_answered(f) || f->is_unwanted ? len : pass_on(f, data, len);
}

static void send_last(void *arg);

/* The pipe has room again: not to be called from here. */
static void send_last_later(void *arg)
{
    struct forward *f = arg;
    atomic_fetch_add(&f->refs, 1);
    loop_post(gateway_config_of(f->gateway)->loop, send_last, f);
}

/* In the HTTP thread, or in the loop's for a reference. */
static void put_last(struct forward *f)
{
    bpipe_on_space(f->upload, send_last_later, f);
    if (bpipe_try_write(f->upload, &f->last, 1, NULL) != BPIPE_AGAIN)
        bpipe_finish(f->upload, NULL);
}

static void send_last(void *arg)
{
    struct forward *f = arg;
    put_last(f);
    forward_unref(f);
}

static void body_is_over(struct forward *f)
{
    pthread_mutex_lock(&f->lock);
    f->body_over = true;
    reply_if_due(f, true);
    pthread_mutex_unlock(&f->lock);
}

/* The whole body is right: the target gets the rest, or the call begins. */
static void complete_body(struct forward *f)
{
    if (f->upload != NULL)
        put_last(f);
    body_is_over(f);
    if (f->upload != NULL)
        return;
    atomic_fetch_add(&f->refs, 1);
    call_start(f);
}

static void all_came(struct http_request *req, void *ctx)
{
    (void)req;
    struct forward *f = ctx;
    struct s3_failure why;
    if (is_answered(f))
        return;
    if (f->is_unwanted)
        body_is_over(f);
    else if (body_end(f->plan.body, &why) != S3_OK)
        refuse_body(f, &why);
    else
        complete_body(f);
}

static void body_cut(struct http_request *req, void *ctx)
{
    (void)req;
    struct forward *f = ctx;
    pthread_mutex_lock(&f->lock);
    f->req = NULL;
    pthread_mutex_unlock(&f->lock);
}

static void body_resume(void *arg)
{
    http_resume_body(arg);
}

/* A body that is not over now never will be: the target must not wait for the rest. */
static void request_ended(void *arg)
{
    struct forward *f = arg;
    if (!f->body_over) /* written by this thread alone */
        cut_upload(f, "the client's connection ended in the middle of the body");
    forward_unref(f);
}

/* --- the start -------------------------------------------------------------------------------- */

static const char *const *copy_lines(struct arena *a, const char *const *lines)
{
    size_t count = 0;
    while (lines[count] != NULL)
        count++;
    const char **copy = arena_alloc(a, (count + 1) * sizeof copy[0]);
    for (size_t i = 0; i < count; i++)
        copy[i] = arena_strdup(a, lines[i]);
    return copy;
}

static struct forward *forward_new(struct http_request *req, const struct gateway_call *call,
                                   const struct forward_plan *plan, const char *url)
{
    struct forward *f = xcalloc(1, sizeof *f);
    uint64_t length = plan->body != NULL ? body_length(plan->body) : 0;
    f->gateway = call->gateway;
    f->s3 = call;
    f->plan = *plan;
    f->reply.text = BUF_INIT;
    f->reply.body = plan->body;
    f->req = req;
    f->body_over = plan->body == NULL;
    f->arena = arena_new(1024);
    atomic_init(&f->refs, 1);
    pthread_mutex_init(&f->lock, NULL);
    if (length > 0)
        f->upload = bpipe_new(gateway_config_of(call->gateway)->buffer_bytes);
    f->call = (struct http_call){.method = plan->method,
                                 .url = arena_strdup(f->arena, url),
                                 .headers = copy_lines(f->arena, plan->headers),
                                 .upload = f->upload,
                                 .upload_length = (int64_t)length,
                                 .to_public = true,
                                 .once = !is_read(f) && length == 0,
                                 .on_head = call_head,
                                 .request_id = arena_strdup(f->arena, http_request_id(req))};
    http_on_end(req, request_ended, f);
    return f;
}

/* Nothing to send, or nothing before the whole body has been looked at. */
static void begin_body(struct forward *f, struct http_request *req)
{
    static const struct http_body_ops ops = {.data = body_data, .end = all_came, .cut = body_cut};
    if (http_content_length(req) == 0) {
        all_came(req, f);
        return;
    }
    if (f->upload != NULL)
        bpipe_on_space(f->upload, body_resume, req);
    http_take_body(req, &ops, f);
}

static void begin(struct forward *f, struct http_request *req)
{
    bool has_body = f->plan.body != NULL;
    if (!has_body || f->upload != NULL) {
        atomic_fetch_add(&f->refs, 1);
        call_start(f);
    }
    if (has_body)
        begin_body(f, req);
}

static void forward_refuse(struct http_request *req, const struct forward_plan *plan,
                           const struct error *err)
{
    body_free(plan->body);
    http_reply_error(req, err);
}

void forward_to(struct http_request *req, const struct gateway_call *call,
                const struct forward_plan *plan, const char *url)
{
    struct error err = ERROR_INIT;
    if (gateway_enter_forward(call->gateway)) {
        begin(forward_new(req, call, plan, url), req);
        return;
    }
    error_set(&err, E_OVERLOAD, "s3_forwards_max requests are under way");
    forward_refuse(req, plan, &err);
}

void forward_start(struct http_request *req, const struct gateway_call *call,
                   const struct forward_plan *plan)
{
    _cleanup_buf_ struct buf url = BUF_INIT;
    struct error err = ERROR_INIT;
    const struct target_call target = {.method = plan->method,
                                       .bucket = call->s3.bucket,
                                       .key = call->s3.key,
                                       .range = plan->range};
    if (target_call_url(req, call->gateway, &target, &url, &err) == 0)
        forward_to(req, call, plan, buf_str(&url));
    else
        forward_refuse(req, plan, &err);
}
