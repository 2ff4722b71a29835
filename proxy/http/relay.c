/* Who replies.  The head of the node's answer comes in the data loop's thread, while the client may
 * still be sending: until its body is over only the request's own HTTP thread may touch the
 * request, for the client can vanish at any moment.  So the answer is kept, and the reply is made
 * by whoever comes second: the loop, when the body was over already; or the HTTP thread, at the
 * next piece of the body or at its end.  `lock` decides; `req` is NULL once it has been replied to
 * or is gone. */
#include "proxy/http/relay.h"

#include <pthread.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "net/http/pipe.h"
#include "proxy/http/hop.h"
#include "proxy/primary/overtaken.h"
#include "proxy/http/relay_waits.h"

enum { HOPS_MOST = 3 }; /* redirects of one read */

struct header {
    struct header *next;
    const char *name;
    const char *value;
};

struct relay {
    struct proxy *proxy;
    int silence; /* the code for a node that does not answer; 0: the transport's */
    struct overtaken_wait primary; /* with silence */
    const char *path;              /* of a request to the primary, … */
    uint64_t primary_until_ms;     /* … and how long it waits for one */
    struct http_call call;         /* as it was made, or is made again: of the arena */
    struct relay_object object;    /* of a read that is made again, until … */
    uint64_t until_ms;             /* 0: of none */
    bool waits;                    /* it is one of proxy->reads_waiting */
    bool put_off;                  /* by an answer that is not the last */
    bool follows;                  /* it is for an object, which another target may have by now */
    const char *sent_on;           /* where a redirect of it leads, until it is followed, … */
    unsigned hops;                 /* … and how many were */
    struct relay_wait wait;
    atomic_uint refs;     /* the request's and the call's */
    struct bpipe *upload; /* NULL without a body */
    struct bpipe *download;
    pthread_mutex_t lock; /* guards what follows; nothing that waits is called under it */
    struct http_request *req;
    bool body_over;
    bool answered; /* err.code: no answer came; else the head: */
    struct error err;
    int status;
    int64_t length;
    struct arena *arena; /* of the headers */
    struct header *headers;
    struct header **headers_end;
};

void relay_leave(struct proxy *p)
{
    atomic_fetch_sub(&p->relays, 1);
}

static void relay_unref(struct relay *r)
{
    if (atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    relay_leave(r->proxy);
    if (r->waits)
        atomic_fetch_sub(&r->proxy->reads_waiting, 1);
    bpipe_unref(r->upload);
    bpipe_unref(r->download);
    pthread_mutex_destroy(&r->lock);
    arena_free(r->arena);
    free(r);
}

/* --- the reply ------------------------------------------------------------------------------- */

static void reply_answer(struct relay *r, struct http_request *req)
{
    for (const struct header *h = r->headers; h != NULL; h = h->next)
        http_reply_header(req, h->name, h->value);
    if (r->status == 204 || r->status == 304)
        http_reply_empty(req, r->status);
    else
        http_reply_pipe(req, r->status, r->length, r->download);
}

/* With the lock held. */
static void reply_if_due(struct relay *r, bool in_http_thread)
{
    struct http_request *req = r->req;
    if (req == NULL || !r->answered || !(r->body_over || in_http_thread))
        return;
    r->req = NULL;
    if (r->err.code != 0)
        proxy_reply_error(req, &r->err);
    else
        reply_answer(r, req);
}

/* --- the client's side, in the HTTP thread ---------------------------------------------------- */

static size_t body_data(struct http_request *req, void *ctx, const char *data, size_t len)
{
    (void)req;
    struct relay *r = ctx;
    pthread_mutex_lock(&r->lock);
    reply_if_due(r, true);
    bool open = r->req != NULL;
    pthread_mutex_unlock(&r->lock);
    if (!open)
        return len;
    ssize_t taken = bpipe_try_write(r->upload, data, len, NULL);
    if (taken == BPIPE_AGAIN)
        return 0;
    return taken < 0 ? len : (size_t)taken; /* the node takes no more: the rest goes nowhere */
}

static void body_end(struct http_request *req, void *ctx)
{
    (void)req;
    struct relay *r = ctx;
    bpipe_finish(r->upload, NULL);
    pthread_mutex_lock(&r->lock);
    r->body_over = true;
    reply_if_due(r, true);
    pthread_mutex_unlock(&r->lock);
}

static void body_cut(struct http_request *req, void *ctx)
{
    (void)req;
    struct relay *r = ctx;
    pthread_mutex_lock(&r->lock);
    r->req = NULL;
    pthread_mutex_unlock(&r->lock);
}

static void body_resume(void *arg)
{
    http_resume_body(arg);
}

/* A body that is not over now never will be: the node must not wait for the rest. */
static void request_ended(void *arg)
{
    struct relay *r = arg;
    if (r->upload != NULL) {
        struct error cut;
        error_set(&cut, E_CANCELLED, "the client's connection ended in the middle of the body");
        bpipe_on_space(r->upload, NULL, NULL);
        if (!r->body_over) /* written by this thread alone */
            bpipe_finish(r->upload, &cut);
    }
    relay_unref(r);
}

/* --- the node's side, in the data loop's thread ----------------------------------------------- */

struct copying {
    struct relay *relay;
    const char *connection;
};

static void copy_reply_header(void *ctx, const char *name, const char *value)
{
    const struct copying *c = ctx;
    struct relay *r = c->relay;
    if (!hop_reply_header_passes(name, c->connection))
        return;
    struct header *h = arena_alloc(r->arena, sizeof *h);
    h->name = arena_strdup(r->arena, name);
    h->value = arena_strdup(r->arena, value);
    *r->headers_end = h;
    r->headers_end = &h->next;
}

/* Is it to be asked again?  Reads that wait leave most of the relays to others. */
static bool may_wait(struct relay *r)
{
    struct proxy *p = r->proxy;
    if (clock_ms() >= r->until_ms)
        return false;
    if (!r->waits &&
        atomic_fetch_add(&p->reads_waiting, 1) >= param_live(p->params.relays_max) / 4) {
        atomic_fetch_sub(&p->reads_waiting, 1);
        return false;
    }
    r->waits = true;
    return true;
}

/* An owner that does not act by itself knows who does.  A client that has us stream follows none
 * itself. */
static bool follows(struct relay *r, const struct http_head *head)
{
    const char *location = head->header(head, "Location");
    bool may = head->status == 307 && r->follows && r->upload == NULL && location != NULL &&
               r->hops < HOPS_MOST;
    if (may) {
        r->hops++;
        r->sent_on = arena_strdup(r->arena, location);
    }
    return may;
}

static void call_answered(void *arg, const struct http_head *head)
{
    struct relay *r = arg;
    struct copying c = {.relay = r, .connection = head->header(head, "Connection")};
    if (follows(r, head) || (head->status == 503 && may_wait(r))) {
        struct error err;
        r->put_off = true;
        error_set(&err, E_CANCELLED, "it is asked again");
        bpipe_cancel(r->download, &err);
        return;
    }
    pthread_mutex_lock(&r->lock);
    r->answered = true;
    r->status = head->status;
    r->length = head->content_length;
    head->each_header(head, copy_reply_header, &c);
    reply_if_due(r, false);
    pthread_mutex_unlock(&r->lock);
}

/* Whether the primary had the request when it went away, nobody can say. */
static void explain_silence(const struct relay *r, bool not_sent, struct error *err)
{
    bool by_us = err->code == E_CANCELLED, stopping = !atomic_load(&r->proxy->ready);
    if (by_us && !stopping)
        error_set(err, E_TIMEOUT, "'%s' is the primary no longer", r->primary.primary);
    if (by_us && stopping)
        error_set(err, E_NOT_READY, "this proxy is stopping");
    else if (r->silence == E_NOT_PRIMARY || (r->silence == E_IN_DOUBT && not_sent))
        error_recode(err, E_NOT_PRIMARY, "the primary does not answer");
    else if (r->silence == E_IN_DOUBT)
        error_recode(err, E_IN_DOUBT,
                     "the primary does not answer, so that it is not known whether the change was "
                     "made; repeating it is safe");
}

/* The end of the call, where no head of an answer has come. */
static void unanswered(struct relay *r, const struct error *err)
{
    pthread_mutex_lock(&r->lock);
    r->answered = true;
    r->err = *err;
    reply_if_due(r, false);
    pthread_mutex_unlock(&r->lock);
    relay_unref(r);
}

static void call_done(void *arg, struct http_result *result);

static void call_at(struct relay *r, const char *url)
{
    r->put_off = false;
    bpipe_unref(r->download); /* nobody has it: the reply has not begun */
    r->download = bpipe_new(r->proxy->params.relay_buffer);
    r->call.url = url;
    r->call.download = r->download;
    http_call_start(r->proxy->data_client, &r->call, call_done, r);
}

/* Who owns it now? */
static void ask_again(void *arg)
{
    struct relay *r = arg;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *url = NULL;
    if (!atomic_load(&r->proxy->ready))
        error_set(&err, E_NOT_READY, "this proxy is stopping");
    else
        url = r->object.where(r->proxy, &r->object, &err);
    if (url == NULL && err.code == E_NODE_UNREACHABLE && may_wait(r))
        relay_waits_add(r->proxy->relay_waits, &r->wait, ask_again, r);
    else if (url == NULL)
        unanswered(r, &err);
    if (url != NULL)
        call_at(r, arena_strdup(r->arena, url));
}

static void call_done(void *arg, struct http_result *result)
{
    struct relay *r = arg;
    if (r->silence != 0)
        overtaken_remove(r->proxy->overtaken, &r->primary);
    if (r->answered) { /* written by this thread alone */
        relay_unref(r);
        return;
    }
    if (r->sent_on != NULL) {
        call_at(r, steal(r->sent_on));
        return;
    }
    bool unreached = result->code == E_NET || result->code == E_TIMEOUT;
    if (r->put_off || (unreached && may_wait(r))) {
        relay_waits_add(r->proxy->relay_waits, &r->wait, ask_again, r);
        return;
    }
    struct error err = result->err;
    if (r->silence != 0)
        explain_silence(r, result->not_sent, &err);
    else if (err.code == E_CANCELLED)
        error_set(&err, E_NOT_READY, "this proxy is stopping");
    unanswered(r, &err);
}

/* --- the start ------------------------------------------------------------------------------- */

/* The request's headers as lines, NULL-terminated. */
struct lines {
    struct arena *arena;
    const char *connection;
    const char **lines;
    size_t count, room;
};

static void add_line(struct lines *l, const char *line)
{
    if (l->count + 1 >= l->room) {
        size_t room = l->room > 0 ? 2 * l->room : 32;
        const char **longer = arena_alloc(l->arena, room * sizeof longer[0]);
        if (l->count > 0)
            memcpy(longer, l->lines, l->count * sizeof longer[0]);
        l->lines = longer;
        l->room = room;
    }
    l->lines[l->count++] = line;
    l->lines[l->count] = NULL;
}

static void add_request_header(void *ctx, const char *name, const char *value)
{
    struct lines *l = ctx;
    if (hop_request_header_passes(name, l->connection))
        add_line(l, http_header_line(l->arena, name, value));
}

static struct relay *relay_new(struct proxy *p, struct http_request *req, bool has_body)
{
    struct relay *r = xcalloc(1, sizeof *r);
    r->proxy = p;
    atomic_init(&r->refs, 2);
    pthread_mutex_init(&r->lock, NULL);
    r->req = req;
    r->arena = arena_new(1024);
    r->headers_end = &r->headers;
    r->download = bpipe_new(p->params.relay_buffer);
    r->body_over = !has_body;
    if (!r->body_over)
        r->upload = bpipe_new(p->params.relay_buffer);
    return r;
}

bool relay_enter(struct proxy *p, struct http_request *req)
{
    if (atomic_fetch_add(&p->relays, 1) < param_live(p->params.relays_max))
        return true;
    atomic_fetch_sub(&p->relays, 1);
    struct error err;
    error_set(&err, E_OVERLOAD, "%llu requests are streamed through this proxy, its limit",
              (unsigned long long)param_live(p->params.relays_max));
    proxy_reply_error(req, &err);
    return false;
}

static bool reads(const struct http_request *req)
{
    return http_method(req) == HTTP_GET || http_method(req) == HTTP_HEAD;
}

/* Could it be repeated after it was carried out?  A body that has begun to be sent could not; one
 * of unknown length may be empty. */
static bool is_repeatable_change(const struct http_request *req)
{
    return !reads(req) && http_content_length(req) <= 0;
}

static bool has_body(const struct http_request *req)
{
    return http_content_length(req) != 0;
}

static const char *const *lines_of(const struct relay *r, struct http_request *req,
                                   const char *const *more)
{
    struct lines lines = {.arena = r->arena, .connection = http_header_list(req, "Connection")};
    http_each_header(req, add_request_header, &lines);
    for (; *more != NULL; more++)
        add_line(&lines, arena_strdup(r->arena, *more));
    if (http_header(req, "Content-Type") == NULL)
        add_line(&lines, "Content-Type:"); /* none: curl would make one up for a body */
    return lines.lines;
}

/* NULL: it is refused, and answered.  To a node's public listener; `more`: lines "Name:
 * value" for it, up to NULL. */
static struct relay *prepare(struct proxy *p, struct http_request *req, const char *url,
                             const char *const *more, bool streams_body)
{
    if (!relay_enter(p, req))
        return NULL;
    struct relay *r = relay_new(p, req, streams_body);
    r->call = (struct http_call){
        .method = http_method(req),
        .url = arena_strdup(r->arena, url),
        .headers = lines_of(r, req, more),
        .upload = r->upload,
        .upload_length = http_content_length(req),
        .download = r->download,
        .to_public = true,
        .once = is_repeatable_change(req),
        .any_status_streams = true,
        .on_head = call_answered,
        .request_id = arena_strdup(r->arena, http_request_id(req)),
    };
    return r;
}

static void take_body(struct relay *r, struct http_request *req)
{
    static const struct http_body_ops body_ops = {
        .data = body_data, .end = body_end, .cut = body_cut};
    http_on_end(req, request_ended, r);
    if (r->upload != NULL) {
        bpipe_on_space(r->upload, body_resume, req);
        http_take_body(req, &body_ops, r);
    }
}

/* To a target, which takes a body itself where it would redirect a client that can follow. */
static const char *const to_target[] = {"Dfc-Redirect: never", NULL};

bool relay_is_wanted(const struct http_request *req)
{
    const char *header = http_header(req, "Dfc-Redirect");
    const char *query = http_query(req, "redirect");
    return (header != NULL && strcmp(header, "never") == 0) ||
           (query != NULL && strcmp(query, "never") == 0) || http_body_comes_once(req);
}

/* A member is put into an archive: the target copies the archive before it replies. */
static bool puts_members(struct http_request *req)
{
    return http_method(req) == HTTP_PUT &&
           (http_query(req, "member") != NULL || http_query(req, "members") != NULL ||
            http_query(req, "archpath") != NULL);
}

/* The target replies when something has happened. */
static bool waits(struct http_request *req)
{
    return http_query(req, "wait") != NULL;
}

static bool body_is_over(void *arg)
{
    const struct relay *r = arg;
    return r->body_over; /* written by the thread that asks */
}

void relay_start(struct proxy *p, struct http_request *req, const char *url)
{
    struct relay *r = prepare(p, req, url, to_target, has_body(req));
    if (r == NULL)
        return;
    r->follows = true;
    if (puts_members(req) || waits(req)) {
        r->call.stall_timeout_ms = HTTP_NO_STALL_TIMEOUT;
        http_be_patient(req, body_is_over, r);
    }
    take_body(r, req);
    http_call_start(p->data_client, &r->call, call_done, r);
}

void relay_document(struct proxy *p, struct http_request *req, enum http_method method,
                    const char *url, const struct buf *body)
{
    struct relay *r = prepare(p, req, url, to_target, false);
    if (r == NULL)
        return;
    r->call.method = method;
    r->call.once = !reads(req);
    r->follows = true;
    if (body->len > 0)
        r->call.body = arena_strndup(r->arena, body->data, body->len);
    r->call.body_len = body->len;
    r->call.body_stays = true;
    take_body(r, req);
    http_call_start(p->data_client, &r->call, call_done, r);
}

void relay_read(struct proxy *p, struct http_request *req, const char *url,
                const struct relay_object *object)
{
    struct relay *r = prepare(p, req, url, to_target, has_body(req));
    if (r == NULL)
        return;
    r->follows = true;
    if (r->upload == NULL) /* a body is sent once */
        r->until_ms = clock_ms() + param_live(p->params.owner_wait);
    r->object = (struct relay_object){.bucket = arena_strdup(r->arena, object->bucket),
                                      .object = arena_strdup(r->arena, object->object),
                                      .raw_query = arena_strdup(r->arena, object->raw_query),
                                      .proof = arena_strdup(r->arena, object->proof),
                                      .where = object->where};
    take_body(r, req);
    http_call_start(p->data_client, &r->call, call_done, r);
}

static uint64_t term_in_force(struct proxy *p)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    return s->term;
}

static void call_primary(struct relay *r, const struct metastore_primary *primary, uint64_t term)
{
    const char *base = r->call.to_public ? primary->public_url : primary->control_url;
    r->call.url = arena_printf(r->arena, "%s%s", base, r->path);
    r->call.node = arena_strdup(r->arena, primary->id);
    r->primary.term = term;
    r->primary.primary = r->call.node;
    overtaken_call(r->proxy->overtaken, &r->primary, &r->call, call_done, r);
}

/* Nothing of the body has been sent. */
static void no_primary(struct relay *r, const struct error *err)
{
    if (r->upload != NULL)
        bpipe_cancel(r->upload, err);
    unanswered(r, err);
}

static void seek_primary(void *arg)
{
    struct relay *r = arg;
    struct proxy *p = r->proxy;
    _cleanup_(metastore_primary_done)
    struct metastore_primary primary = {0};
    struct error err = ERROR_INIT;
    uint64_t term = term_in_force(p); /* before it is found (overtaken.h) */
    bool comes;
    if (proxy_seek_primary(p, &primary, &comes, &err) == 0)
        call_primary(r, &primary, term);
    else if (comes && atomic_load(&p->ready) && clock_ms() < r->primary_until_ms)
        relay_waits_add(p->relay_waits, &r->wait, seek_primary, r);
    else
        no_primary(r, &err);
}

static void seek_later(void *arg)
{
    struct relay *r = arg;
    relay_waits_add(r->proxy->relay_waits, &r->wait, seek_primary, r);
}

void relay_to_primary(struct proxy *p, struct http_request *req, const char *path, bool to_public,
                      const char *const *headers, bool again)
{
    struct relay *r = prepare(p, req, path, headers, has_body(req));
    if (r == NULL)
        return;
    r->silence = reads(req) ? E_NOT_PRIMARY : E_IN_DOUBT;
    r->path = r->call.url;
    r->primary_until_ms = clock_ms() + param_live(p->params.primary_wait);
    r->call.to_public = to_public;
    r->call.stall_timeout_ms = p->params.call_timeout;
    take_body(r, req);
    loop_post(p->data_loop, again ? seek_later : seek_primary, r);
}
