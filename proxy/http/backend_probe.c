#include "proxy/http/backend_probe.h"

#include "common/mem.h"
#include "proxy/primary/proxy.h"

/* A target gives up a backend that is silent within connect_timeout, or soon after. */
enum { CHECK_MS = 30000 };

struct check {
    struct proxy *proxy;
    char *node; /* the target */
    char *url;  /* the target's */
    char *request_id;
    void (*done)(void *arg, const struct error *err);
    void *arg;
};

static void check_free(struct check *c)
{
    free(c->node);
    free(c->url);
    free(c->request_id);
    free(c);
}

static void answered(void *arg, struct http_result *r)
{
    struct check *c = arg;
    struct error err = ERROR_INIT;
    int code = http_result_error(r, c->url, &err);
    c->done(c->arg, code != 0 ? &err : NULL);
    check_free(c);
}

/* In the list loop. */
static void ask(void *arg)
{
    struct check *c = arg;
    const struct http_call call = {.method = HTTP_GET,
                                   .url = c->url,
                                   .node = c->node,
                                   .total_timeout_ms = CHECK_MS,
                                   .request_id = c->request_id};
    http_call_start(c->proxy->list_client, &call, answered, c);
}

static const struct node *first_active(const struct smap *smap)
{
    for (size_t i = 0; i < smap->count; i++) {
        const struct node *n = &smap->nodes[i];
        if (n->role == NODE_TARGET && n->state == NODE_ACTIVE)
            return n;
    }
    return NULL;
}

static char *url_of(const struct node *n, const char *backend)
{
    struct buf url = BUF_INIT;
    buf_printf(&url, "%s/v1/backends?url=", n->data_url);
    buf_put_url_escaped(&url, backend, strlen(backend), "");
    return buf_steal(&url);
}

void backend_probe(struct proxy *p, const char *url, const char *request_id,
                   void (*done)(void *arg, const struct error *err), void *arg)
{
    struct error err = ERROR_INIT;
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct node *n = first_active(&s->smap);
    if (n == NULL) {
        error_set(&err, E_NO_TARGETS, "no target is active that could ask the backend");
        done(arg, &err);
        return;
    }
    struct check *c = xcalloc(1, sizeof *c);
    *c = (struct check){.proxy = p,
                        .node = xstrdup(n->id),
                        .url = url_of(n, url),
                        .request_id = xstrdup(request_id),
                        .done = done,
                        .arg = arg};
    loop_post(p->list_loop, ask, c);
}
