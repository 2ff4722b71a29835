#include "target/backend/exchange.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "cluster/props/backend_endpoints.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "common/origin.h"
#include "common/rng.h"
#include "target/backend/aws_temporary.h"
#include "target/backend/gates.h"
#include "target/backend/google_token.h"
#include "target/backend/head.h"
#include "target/backend/outages.h"

#define ATTEMPT_MAGIC 0xba0cced0u

enum {
    REDIRECTS_MAX = 5,
    LOCATION_MAX = 8192,
    ANSWER_MAX =
        16 << 20, /* a page of a list: 1000 names, each escaped, and what is said of them */
    SEND_PIPE_BYTES = 512 << 10,
    SEND_PIECE_BYTES = 128 << 10,
};

/* One request on its way: shared by who waits for its head and the HTTP client, until both have
 * left. */
struct attempt {
    unsigned magic;
    const struct backend_ops *ops;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned refs;
    bool head_seen, over;
    bool compares; /* 304 is an answer, too */
    struct backend_facts facts;
    char *location; /* of a redirect */
    char region[72];
    uint64_t retry_after_ms;
    int transport; /* code of a transport error, or 0 */
    char why[200];
    struct buf words;
    struct buf body; /* of a good answer that has no pipe */
};

static struct attempt *attempt_of(void *arg)
{
    struct attempt *t = arg;
    assert(t->magic == ATTEMPT_MAGIC);
    return t;
}

static void attempt_unref(struct attempt *t)
{
    pthread_mutex_lock(&t->lock);
    bool last = --t->refs == 0;
    pthread_mutex_unlock(&t->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    buf_done(&t->words);
    buf_done(&t->body);
    free(t->location);
    free(t);
}

/* --- in the loop's thread --------------------------------------------------------------------- */

static void take_head(void *arg, const struct http_head *head)
{
    struct attempt *t = attempt_of(arg);
    pthread_mutex_lock(&t->lock);
    backend_read_head(t->ops, head, &t->facts);
    const char *location = head->header(head, "Location");
    const char *region = head->header(head, "x-amz-bucket-region");
    if (location != NULL && strlen(location) < LOCATION_MAX)
        t->location = xstrdup(location);
    if (region != NULL && strlen(region) < sizeof t->region)
        memcpy(t->region, region, strlen(region) + 1);
    t->retry_after_ms = failure_retry_after_ms(head->header(head, "Retry-After"), clock_wall_ms());
    t->head_seen = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* "GET URL: why" without the URL. */
static void keep_why(struct attempt *t, const char *message)
{
    const char *last = NULL;
    for (const char *at = message; (at = strstr(at, ": ")) != NULL; at += 2)
        last = at + 2;
    snprintf(t->why, sizeof t->why, "%s", last != NULL ? last : "the connection failed");
}

static void take_end(void *arg, struct http_result *r)
{
    struct attempt *t = attempt_of(arg);
    pthread_mutex_lock(&t->lock);
    t->transport = r->code;
    if (r->code != 0)
        keep_why(t, r->err.message);
    else if (r->status >= 300 && t->ops->words != NULL && r->body.len > 0)
        t->ops->words(r->body.data, r->body.len, &t->words);
    else if (r->status < 300)
        buf_append(&t->body, buf_str(&r->body), r->body.len);
    t->over = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    attempt_unref(t);
}

/* --- one try ---------------------------------------------------------------------------------- */

static bool is_good(const struct attempt *t)
{
    return t->head_seen && (t->facts.status == 200 || t->facts.status == 206 ||
                            (t->facts.status == 304 && t->compares));
}

static struct attempt *attempt_start(const struct exchange_env *env, const struct backend_ops *ops,
                                     bool compares, const struct http_call *call)
{
    struct attempt *t = xcalloc(1, sizeof *t);
    *t = (struct attempt){.magic = ATTEMPT_MAGIC,
                          .ops = ops,
                          .refs = 2,
                          .compares = compares,
                          .facts = {.status = 0}};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    struct http_call watched = *call;
    watched.on_head = take_head;
    metric_add(metric_get(M_backend_requests_total, NULL), 1);
    http_call_start(env->client, &watched, take_end, t);
    return t;
}

/* A HEAD has nothing after its head, and is over with it. */
static void attempt_wait(struct attempt *t, bool has_body)
{
    pthread_mutex_lock(&t->lock);
    while (!t->over && !(has_body && is_good(t)))
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static int attempt_failed(const struct attempt *t, struct error *err)
{
    struct buf words = t->words;
    if (t->transport != 0)
        return failure_of_transport(t->transport, t->why, err);
    return failure_of_status(t->facts.status, buf_str(&words),
                             is_redirect(t->facts.status) && *t->region != '\0' ? t->region : NULL,
                             err);
}

/* --- redirects -------------------------------------------------------------------------------- */

/* "http://host/…" of it, or "/path" on the same host. */
static const char *resolve(struct arena *a, const char *base, const char *location)
{
    if (strncmp(location, "http://", 7) == 0 || strncmp(location, "https://", 8) == 0)
        return arena_strdup(a, location);
    const char *scheme_end = strstr(base, "://");
    if (location[0] != '/' || scheme_end == NULL)
        return NULL;
    if (location[1] == '/')
        return arena_printf(a, "%.*s:%s", (int)(scheme_end - base), base, location);
    size_t origin = (size_t)(scheme_end - base) + 3;
    origin += strcspn(base + origin, "/?#");
    return arena_printf(a, "%.*s%s", (int)origin, base, location);
}

static bool follows(const struct attempt *t, struct arena *a, struct backend_request *request,
                    unsigned *redirects)
{
    if (!t->ops->redirects || t->transport != 0 || !is_redirect(t->facts.status) ||
        t->location == NULL || ++*redirects > REDIRECTS_MAX)
        return false;
    const char *url = resolve(a, request->url, t->location);
    if (url == NULL || (strncmp(request->url, "https:", 6) == 0 && strncmp(url, "https:", 6) != 0))
        return false;
    request->url = url;
    return true;
}

/* --- all tries -------------------------------------------------------------------------------- */

struct course {
    const struct exchange_env *env;
    const struct backend_ops *ops;
    const struct backend_spec *spec;
    struct backend_ask ask;
    struct arena *arena;
    size_t pipe_bytes;
    unsigned done, redirects;
    bool renewed;                   /* what lets us in; what was refused is: */
    struct aws_keys refused_keys;   /* … */
    const char *refused_token;      /* … or NULL */
    struct aws_keys keys;           /* of who signs with keys … */
    enum aws_source source;         /* … and where they are from */
    struct gate_pass pass;          /* of the try under way */
    struct backend_request request; /* url NULL: to be made */
};

static void try_once(struct course *c, struct attempt **out, struct bpipe **pipe)
{
    bool has_body = c->ask.method == HTTP_GET;
    *pipe = has_body ? bpipe_new(c->pipe_bytes) : NULL;
    const struct http_call call = {.method = c->ask.method,
                                   .url = c->request.url,
                                   .headers = c->request.headers,
                                   .download = *pipe};
    *out = attempt_start(c->env, c->ops, backend_ask_compares(&c->ask), &call);
    attempt_wait(*out, has_body);
}

/* Keys of the environment stay what they are. */
static bool has_ended_keys(const struct course *c, const struct attempt *t)
{
    struct buf words = t->words;
    bool is_elsewhere = *t->region != '\0' && strcmp(t->region, c->spec->region) != 0;
    return c->ask.keys != NULL && c->source != AWS_ENV &&
           failure_is_of_ended_keys(t->facts.status, buf_str(&words), is_elsewhere);
}

/* What lets us in may end before its time: once, another one is asked for. */
static bool renews(struct course *c, const struct attempt *t)
{
    if (c->renewed || t->transport != 0)
        return false;
    if (c->ask.token != NULL && t->facts.status == 401)
        c->refused_token = c->ask.token;
    else if (has_ended_keys(c, t))
        c->refused_keys = c->keys;
    else
        return false;
    c->request.url = NULL;
    return c->renewed = true;
}

/* True: try again, now. */
static bool goes_on(struct course *c, const struct attempt *t, struct error *err)
{
    uint64_t luck, wait_ms;
    if (follows(t, c->arena, &c->request, &c->redirects) || renews(c, t))
        return true;
    attempt_failed(t, err);
    random_bytes(&luck, sizeof luck);
    if (c->env->once || !failure_is_passing(t->facts.status, t->transport) ||
        !failure_wait(&c->env->rules, ++c->done, t->retry_after_ms, luck, &wait_ms) ||
        !c->env->wait(c->env->ctx, wait_ms))
        return false;
    metric_add(metric_get(M_backend_retries_total, NULL), 1);
    c->request.url = NULL;
    return true;
}

static int let_in(struct course *c, struct error *err)
{
    if (!c->spec->is_signed)
        return 0;
    int code = backend_endpoints_check(c->env->endpoints, c->spec, err);
    if (code != 0)
        return code;
    if (c->ops->bears_token)
        return google_token(c->env->tokens, c->env, c->arena, c->refused_token, &c->ask.token, err);
    if (!c->ops->signs)
        return 0;
    c->ask.keys = &c->keys;
    return aws_temporary_get(c->env->keys, c->env, c->spec->profile,
                             c->renewed ? &c->refused_keys : NULL, &c->keys, &c->source, err);
}

static int make_request(struct course *c, struct error *err)
{
    c->redirects = 0;
    c->ask.wall_ms = clock_wall_ms();
    return c->ops->request(c->spec, &c->ask, c->arena, &c->request, err);
}

/* Each try is made, and signed, anew: when it is its turn. */
static int try_begin(struct course *c, struct error *err)
{
    const bool is_made = c->request.url != NULL;
    int code = is_made ? 0 : let_in(c, err);
    if (code != 0)
        return code;
    if (!gate_enter(c->env->gates, is_made ? c->request.url : c->spec->endpoint, &c->pass))
        return failure_of_transport(E_CANCELLED, "", err);
    code = is_made ? 0 : make_request(c, err);
    if (code != 0)
        gate_leave(c->env->gates, &c->pass, GATE_UNKNOWN);
    return code;
}

/* Its answer has begun, or it has none. */
static void try_answered(struct course *c, const struct attempt *t)
{
    enum gate_verdict verdict = GATE_ANSWERED;
    if (!is_good(t) &&
        (t->transport == E_TIMEOUT || t->facts.status == 429 || t->facts.status == 503))
        verdict = GATE_REFUSED;
    else if (!is_good(t) && t->facts.status == 0)
        verdict = GATE_UNKNOWN;
    gate_leave(c->env->gates, &c->pass, verdict);
}

/* A body that ends with its connection looks the same when it was cut.  A HEAD that is answered for
 * a part of the object gives that part's length. */
static int check_length(const struct course *c, struct backend_facts *facts, struct error *err)
{
    if (c->ask.method == HTTP_HEAD && facts->status == 206)
        facts->length = facts->size;
    if (c->ask.method != HTTP_GET || facts->status == 304 || facts->ends)
        return 0;
    return error_set(
        err, E_BACKEND,
        "the backend's answer has neither a Content-Length nor chunks, so that its end "
        "cannot be told from a cut");
}

static void drop_answer(struct bpipe **pipe, struct error *why)
{
    if (*pipe != NULL)
        bpipe_cancel(*pipe, why);
    bpipe_unref(steal(*pipe));
}

static int course_run(struct course *c, struct backend_facts *facts, struct bpipe **pipe,
                      struct error *err)
{
    for (;;) {
        struct attempt *t;
        struct error why = ERROR_INIT;
        int code = try_begin(c, err);
        if (code != 0)
            return code;
        try_once(c, &t, pipe);
        try_answered(c, t);
        bool good = is_good(t), again = !good && goes_on(c, t, &why);
        *facts = t->facts;
        attempt_unref(t);
        if (good && check_length(c, facts, &why) == 0)
            return 0;
        drop_answer(pipe, &why);
        if (!again)
            return error_set(err, why.code, "%s", why.message);
    }
}

static int course_set(struct course *c, const struct exchange_env *env, const char *backend_url,
                      const struct backend_ask *ask, struct arena *a, struct backend_spec *spec,
                      struct error *err)
{
    int code = backend_parse(backend_url, a, spec, err);
    if (code != 0)
        return code;
    *c = (struct course){
        .env = env, .ops = backend_ops_of(spec->provider), .spec = spec, .ask = *ask, .arena = a};
    return 0;
}

/* Which server it was: without the path and the query of its URL, which may be secret. */
static int name_origin(const struct backend_spec *spec, int code, struct error *err)
{
    bool is_of_backend = code == E_BACKEND || code == E_BACKEND_DENIED || code == E_BACKEND_BUSY ||
                         code == E_BACKEND_TIMEOUT;
    return is_of_backend
               ? error_wrap(err, "backend %.*s", (int)origin_len(spec->endpoint), spec->endpoint)
               : code;
}

static void course_wipe(struct course *c)
{
    aws_keys_wipe(&c->keys);
    aws_keys_wipe(&c->refused_keys);
}

int exchange_begin(const struct exchange_env *env, const char *backend_url,
                   const struct backend_ask *ask, size_t pipe_bytes, struct backend_facts *facts,
                   struct bpipe **pipe, struct error *err)
{
    struct backend_spec spec;
    struct course c;
    _cleanup_arena_ struct arena *a = arena_new(4096);
    *pipe = NULL;
    int code = course_set(&c, env, backend_url, ask, a, &spec, err);
    c.pipe_bytes = pipe_bytes;
    if (code == 0)
        code = name_origin(&spec, course_run(&c, facts, pipe, err), err);
    outages_note(env->outages, backend_url, code);
    course_wipe(&c);
    return code;
}

/* --- sending ---------------------------------------------------------------------------------- */

/* Into the pipe, until all is there or nobody takes it any more. */
static int feed(struct bpipe *pipe, const struct exchange_file *file, struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(SEND_PIECE_BYTES);
    for (uint64_t at = 0; at < file->length;) {
        uint64_t left = file->length - at;
        size_t len = left < SEND_PIECE_BYTES ? (size_t)left : SEND_PIECE_BYTES;
        ssize_t got = pread(file->fd, piece, len, (off_t)(file->offset + at));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return error_errno(err, got < 0 ? errno : EIO, "read the object's bytes");
        if (bpipe_write(pipe, piece, (size_t)got, NULL) != 0)
            return 0; /* the call has ended, and says why */
        at += (uint64_t)got;
    }
    return 0;
}

static int send_once(struct course *c, const struct exchange_file *file, struct attempt **out,
                     struct error *err)
{
    bool streams = file != NULL && file->length > 0;
    bool has_body = c->request.body != NULL || backend_method(&c->ask) == HTTP_POST || file != NULL;
    const char *body = c->request.body != NULL ? c->request.body : "";
    _cleanup_(bpipe_unrefp)
    struct bpipe *pipe = streams ? bpipe_new(SEND_PIPE_BYTES) : NULL;
    const struct http_call call = {.method = backend_method(&c->ask),
                                   .url = c->request.url,
                                   .headers = c->request.headers,
                                   .upload = pipe,
                                   .upload_length = streams ? (int64_t)file->length : 0,
                                   .body = has_body && !streams ? body : NULL,
                                   .body_len = has_body && !streams ? strlen(body) : 0,
                                   .reply_max = ANSWER_MAX};
    *out = attempt_start(c->env, c->ops, false, &call);
    int code = streams ? feed(pipe, file, err) : 0;
    if (streams)
        bpipe_finish(pipe, code != 0 ? err : NULL);
    attempt_wait(*out, false);
    return code;
}

/* 2xx is what was wanted, whichever. */
static bool is_done(const struct attempt *t)
{
    return t->transport == 0 && t->facts.status >= 200 && t->facts.status < 300;
}

static int course_send(struct course *c, const struct exchange_file *file,
                       struct exchange_reply *reply, struct error *err)
{
    for (;;) {
        struct attempt *t;
        struct error why = ERROR_INIT;
        int code = try_begin(c, err);
        if (code != 0)
            return code;
        code = send_once(c, file, &t, &why);
        try_answered(c, t);
        bool good = code == 0 && is_done(t), again = code == 0 && !good && goes_on(c, t, &why);
        reply->facts = t->facts;
        if (good) {
            reply->body = t->body;
            t->body = BUF_INIT;
        }
        if (good && c->ask.verb == BACKEND_SESSION_BEGIN)
            reply->location = steal(t->location);
        attempt_unref(t);
        if (good)
            return 0;
        if (!again)
            return error_set(err, why.code, "%s", why.message);
    }
}

int exchange_send(const struct exchange_env *env, const char *backend_url,
                  const struct backend_ask *ask, const struct exchange_file *file,
                  struct exchange_reply *reply, struct error *err)
{
    struct backend_spec spec;
    struct course c;
    _cleanup_arena_ struct arena *a = arena_new(4096);
    *reply = (struct exchange_reply){.facts = {.status = 0}};
    int code = course_set(&c, env, backend_url, ask, a, &spec, err);
    if (code == 0 && !backend_can(c.ops, ask->verb))
        return error_set(err, E_UNSUPPORTED, "a backend of the kind '%s' cannot be %s",
                         spec.provider, ask->verb == BACKEND_LIST ? "listed" : "written to");
    if (code == 0)
        code = name_origin(&spec, course_send(&c, file, reply, err), err);
    outages_note(env->outages, backend_url, code);
    course_wipe(&c);
    return code;
}
