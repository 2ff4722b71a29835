#include "gateway/proxy_call.h"

#include <string.h>

#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "common/arena.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "net/client/client.h"

enum { CALL_MS = 60000 };

struct pending {
    struct http_request *req;
    const struct gateway_call *call;
    struct proxy_call spec;
    char *url;
};

static const struct node *choose(const struct cluster_state *s)
{
    const struct node *chosen = NULL;
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        bool is_primary = strcmp(n->id, s->primary) == 0;
        if (n->role == NODE_PROXY && n->state == NODE_ACTIVE && (chosen == NULL || is_primary))
            chosen = n;
    }
    return chosen;
}

static void ended(void *arg, struct http_result *r)
{
    struct pending *p = arg;
    struct error err = ERROR_INIT;
    if (http_result_error(r, p->url, &err) == E_CANCELLED)
        error_set(&err, E_NOT_READY, "this node is stopping");
    else if (err.code == E_NET || err.code == E_TIMEOUT)
        error_recode(&err, E_NODE_UNREACHABLE, "the primary cannot be asked");
    p->spec.done(p->req, p->call, p->spec.arg, &err, &r->body);
}

/* For whom: the node decides, and the proxy logs and owns by it. */
static const char *user_line(struct http_request *req)
{
    const struct http_actor *actor = http_actor(req);
    return actor->id != NULL
               ? arena_printf(http_arena(req), HTTP_ACTOR_HEADER ": %s %s", actor->id, actor->name)
               : NULL;
}

int proxy_call_state(struct http_request *req, const struct buf *text, const char **out,
                     struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = json_parse(text->data, text->len, &doc, err);
    if (code == 0)
        code = json_need_str(doc, "", "state", out, err);
    if (code == 0)
        *out = arena_strdup(http_arena(req), *out);
    return code;
}

struct awaited {
    struct http_request *req;
    const struct gateway_call *call;
    void (*fn)(struct http_request *req, const struct gateway_call *call);
};

static void known(void *arg)
{
    const struct awaited *w = arg;
    w->fn(w->req, w->call);
}

void proxy_call_when_known(struct http_request *req, const struct gateway_call *call,
                           const struct buf *text,
                           void (*fn)(struct http_request *req, const struct gateway_call *call))
{
    const struct gateway_config *config = gateway_config_of(call->gateway);
    struct awaited *w = arena_alloc(http_arena(req), sizeof *w);
    struct error err = ERROR_INIT;
    const char *state = NULL;
    *w = (struct awaited){req, call, fn};
    if (config->renew == NULL)
        fn(req, call);
    else if (proxy_call_state(req, text, &state, &err) == 0)
        config->renew(config->ctx, state, known, w);
    else
        http_reply_error(req, &err);
}

int proxy_call_page(const struct buf *text, uint64_t until_ms, struct proxy_page *out,
                    struct error *err)
{
    *out = (struct proxy_page){.next = ""};
    int code = json_parse(text->data, text->len, &out->doc, err);
    if (code == 0)
        code = json_get_array(out->doc, "", "entries", &out->entries, err);
    if (code == 0)
        code = json_get_array(out->doc, "", "prefixes", &out->prefixes, err);
    if (code == 0)
        code = json_need_str(out->doc, "", "next", &out->next, err);
    if (code == 0 && (out->entries == NULL || out->prefixes == NULL))
        code = error_set(err, E_CORRUPT, "a proxy's page of a list has no entries or no prefixes");
    size_t names = json_array_size(out->entries) + json_array_size(out->prefixes);
    if (code == 0 && names == 0 && *out->next != '\0' && clock_ms() > until_ms)
        code = error_set(err, E_OVERLOAD,
                         "so many names were deleted here that no page has one; try again");
    return code;
}

static void start(struct http_client *client, struct pending *p, const struct node *n)
{
    struct http_request *req = p->req;
    const char **lines = arena_alloc(http_arena(req), 2 * sizeof lines[0]);
    _cleanup_buf_ struct buf url = BUF_INIT;
    buf_printf(&url, "%s/v1/s3/", n->control_url);
    buf_put_url_escaped(&url, p->spec.bucket, strlen(p->spec.bucket), "");
    buf_puts(&url, p->spec.rest);
    p->url = arena_strdup(http_arena(req), buf_str(&url));
    lines[0] = user_line(req);
    lines[1] = NULL;
    const struct http_call call = {.method = p->spec.method,
                                   .url = p->url,
                                   .headers = lines,
                                   .node = arena_strdup(http_arena(req), n->id),
                                   .body = p->spec.body,
                                   .body_len = p->spec.body != NULL ? strlen(p->spec.body) : 0,
                                   .body_stays = true,
                                   .reply_max = p->spec.reply_max,
                                   .once = p->spec.method != HTTP_GET,
                                   .total_timeout_ms = CALL_MS,
                                   .request_id = http_request_id(req)};
    http_call_start(client, &call, ended, p);
}

void proxy_call_start(struct http_request *req, const struct gateway_call *call,
                      const struct proxy_call *spec)
{
    const struct gateway_config *config = gateway_config_of(call->gateway);
    struct pending *p = arena_alloc(http_arena(req), sizeof *p);
    struct error err = ERROR_INIT;
    _cleanup_state_ const struct cluster_state *s = state_current(config->state);
    const struct node *n = choose(s);
    *p = (struct pending){.req = req, .call = call, .spec = *spec};
    if (n != NULL) {
        start(config->client, p, n);
        return;
    }
    const struct buf none = BUF_INIT;
    error_set(&err, E_NOT_READY, "no proxy of the cluster is active");
    spec->done(req, call, spec->arg, &err, &none);
}
