#include "proxy/primary/publish.h"

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/push.h"

enum { TICK_MS = 50 };

struct publisher {
    struct proxy *proxy;
    struct pusher *pusher;
    struct loop_timer *timer;
    char *text; /* of the state that was sent last: all nodes get the same */
    uint64_t term, version;
};

/* One message. */
struct sending {
    char *url;
    void (*done)(void *arg, uint64_t term, uint64_t version, const struct error *err);
    void *arg;
};

static const struct cluster_state *env_state(void *ctx)
{
    const struct publisher *pub = ctx;
    return state_current(pub->proxy->state);
}

static int reply_version(const struct http_result *r, const char *url, uint64_t *term,
                         uint64_t *version, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = http_result_error(r, url, err);
    if (code == 0)
        code = json_parse(r->body.len > 0 ? r->body.data : "", r->body.len, &doc, err);
    if (code == 0)
        code = json_need_u64(doc, "", "term", term, err);
    if (code == 0)
        code = json_need_u64(doc, "", "version", version, err);
    return code;
}

static void sending_done(void *arg, struct http_result *r)
{
    struct sending *s = arg;
    struct error err = ERROR_INIT;
    uint64_t term = 0;
    uint64_t version = 0;
    int code = reply_version(r, s->url, &term, &version, &err);
    s->done(s->arg, term, version, code != 0 ? &err : NULL);
    free(s->url);
    free(s);
}

static const char *text_of(struct publisher *pub, const struct cluster_state *s)
{
    if (pub->text == NULL || pub->term != s->term || pub->version != s->version) {
        _cleanup_json_ json_t *doc = state_to_json(s);
        free(pub->text);
        pub->text = json_text(doc);
        pub->term = s->term;
        pub->version = s->version;
    }
    return pub->text;
}

size_t publisher_bytes(const struct publisher *pub)
{
    return pub->text != NULL ? strlen(pub->text) : 0;
}

static void env_send(void *ctx, const struct node *n, const struct cluster_state *state,
                     void (*done)(void *arg, uint64_t term, uint64_t version,
                                  const struct error *err),
                     void *arg)
{
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    struct publisher *pub = ctx;
    struct sending *s = xcalloc(1, sizeof *s);
    *s = (struct sending){
        .url = xprintf("%s/v1/cluster/state", n->control_url), .done = done, .arg = arg};
    const char *text = text_of(pub, state);
    const struct http_call call = {
        .method = HTTP_PUT,
        .url = s->url,
        .node = n->id,
        .headers = headers,
        .body = text,
        .body_len = strlen(text),
        .total_timeout_ms = pub->proxy->params.call_timeout,
    };
    http_call_start(pub->proxy->primary_client, &call, sending_done, s);
}

static void tick(void *arg)
{
    struct publisher *pub = arg;
    pusher_tick(pub->pusher, clock_ms());
}

struct publisher *publisher_start(struct proxy *p)
{
    struct publisher *pub = xcalloc(1, sizeof *pub);
    const struct pusher_env env = {.ctx = pub, .state = env_state, .send = env_send};
    pub->proxy = p;
    pub->pusher = pusher_new(&env, p->id);
    pub->timer = loop_timer_new(p->loop, tick, pub);
    loop_timer_start(pub->timer, TICK_MS, TICK_MS);
    return pub;
}

void publisher_close(struct publisher *pub)
{
    loop_timer_stop(pub->timer);
    pusher_close(pub->pusher);
}

void publisher_stop(struct publisher *pub)
{
    if (pub == NULL)
        return;
    loop_timer_free(pub->timer);
    pusher_free(pub->pusher);
    free(pub->text);
    free(pub);
}

void publisher_state_changed(struct publisher *pub)
{
    pusher_publish(pub->pusher, clock_ms());
}

void publisher_settle(struct publisher *pub, const struct cluster_state *s, void (*fn)(void *arg),
                      void *arg)
{
    pusher_settle(pub->pusher, s, clock_ms() + param_live(pub->proxy->params.settle_timeout), fn,
                  arg);
}
