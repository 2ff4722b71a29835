#include "proxy/primary/publish.h"

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/primary/proxy.h"
#include "proxy/push/push.h"
#include "proxy/push/push_text.h"

enum { TICK_MS = 50, MEASURE_MS = 250 };

struct publisher {
    struct proxy *proxy;
    struct pusher *pusher;
    struct push_texts *texts;
    struct loop_timer *timer;
    size_t bytes; /* of the whole state that was measured last … */
    uint64_t term, version;
    uint64_t measure_ms; /* … and not again before this */
    bool measuring;
};

/* One message. */
struct sending {
    struct publisher *publisher;
    char *node;
    char *url;
    struct push_text *text;
    void (*done)(void *arg, const struct push_reply *r, const struct error *err);
    void *arg;
};

static const struct cluster_state *env_state(void *ctx)
{
    const struct publisher *pub = ctx;
    return state_current(pub->proxy->state);
}

static void sending_end(struct sending *s, const struct push_reply *r, const struct error *err)
{
    s->done(s->arg, r, err);
    if (s->text != NULL)
        push_text_drop(s->text);
    free(s->node);
    free(s->url);
    free(s);
}

static int reply_of(const struct http_result *r, const char *url, struct push_reply *reply,
                    struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = http_result_error(r, url, err);
    if (code == 0)
        code = json_parse(r->body.len > 0 ? r->body.data : "", r->body.len, &doc, err);
    if (code == 0)
        code = push_reply_from_json(doc, reply, err);
    return code;
}

static void sending_done(void *arg, struct http_result *r)
{
    struct sending *s = arg;
    struct error err = ERROR_INIT;
    struct push_reply reply;
    int code = reply_of(r, s->url, &reply, &err);
    sending_end(s, code == 0 ? &reply : NULL, code != 0 ? &err : NULL);
}

static void send_text(void *arg, struct push_text *text, const struct error *err)
{
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    struct sending *s = arg;
    const struct proxy *p = s->publisher->proxy;
    if (err != NULL) {
        sending_end(s, NULL, err);
        return;
    }
    s->text = text;
    const struct http_call call = {
        .method = HTTP_PUT,
        .url = s->url,
        .node = s->node,
        .headers = headers,
        .body = push_text_data(text),
        .body_len = push_text_len(text),
        .body_stays = true,
        .total_timeout_ms = p->params.call_timeout,
    };
    http_call_start(p->primary_client, &call, sending_done, s);
}

static void env_send(void *ctx, const struct node *n, const struct cluster_state *from,
                     const struct cluster_state *state,
                     void (*done)(void *arg, const struct push_reply *r, const struct error *err),
                     void *arg)
{
    struct publisher *pub = ctx;
    struct sending *s = xcalloc(1, sizeof *s);
    *s = (struct sending){.publisher = pub,
                          .node = xstrdup(n->id),
                          .url = xprintf("%s/v1/cluster/state", n->control_url),
                          .done = done,
                          .arg = arg};
    push_texts_ask(pub->texts, from, state, send_text, s);
}

/* --- how long the documents are -------------------------------------------------------------- */

size_t publisher_bytes(const struct publisher *pub)
{
    return pub->bytes;
}

static void measured(void *arg, struct push_text *text, const struct error *err)
{
    struct publisher *pub = arg;
    pub->measuring = false;
    if (err != NULL) {
        pub->version = 0; /* it is tried again, or the publisher closes */
        return;
    }
    pub->bytes = push_text_len(text);
    push_text_drop(text);
}

static void measure(struct publisher *pub, uint64_t now_ms)
{
    _cleanup_state_ const struct cluster_state *s = state_current(pub->proxy->state);
    bool known = pub->term == s->term && pub->version == s->version;
    if (known || pub->measuring || now_ms < pub->measure_ms)
        return;
    pub->term = s->term;
    pub->version = s->version;
    pub->measure_ms = now_ms + MEASURE_MS;
    pub->measuring = true;
    push_texts_ask(pub->texts, NULL, s, measured, pub);
}

static void tick(void *arg)
{
    struct publisher *pub = arg;
    uint64_t now_ms = clock_ms();
    pusher_tick(pub->pusher, now_ms);
    measure(pub, now_ms);
}

struct publisher *publisher_start(struct proxy *p, const struct cluster_state *before)
{
    struct publisher *pub = xcalloc(1, sizeof *pub);
    const struct pusher_env env = {.ctx = pub, .state = env_state, .send = env_send};
    pub->proxy = p;
    pub->texts = push_texts_new(p->loop, p->push_pool);
    pub->pusher = pusher_new(&env, p->id, before);
    pub->timer = loop_timer_new(p->loop, tick, pub);
    loop_timer_start(pub->timer, TICK_MS, TICK_MS);
    return pub;
}

void publisher_close(struct publisher *pub)
{
    loop_timer_stop(pub->timer);
    pusher_close(pub->pusher);
    push_texts_close(pub->texts);
}

void publisher_stop(struct publisher *pub)
{
    if (pub == NULL)
        return;
    loop_timer_free(pub->timer);
    pusher_free(pub->pusher);
    push_texts_free(pub->texts);
    free(pub);
}

void publisher_state_changed(struct publisher *pub)
{
    pusher_publish(pub->pusher, clock_ms());
}

void publisher_settle(struct publisher *pub, const struct cluster_state *s, enum settle_scope scope,
                      void (*fn)(void *arg), void *arg)
{
    pusher_settle(pub->pusher, s, scope, clock_ms() + param_live(pub->proxy->params.settle_timeout),
                  fn, arg);
}
