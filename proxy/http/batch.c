#include "proxy/http/batch.h"

#include <string.h>

#include "access/guard.h"
#include "ais/dialect.h"
#include "common/buf.h"
#include "common/clock.h"
#include "proxy/http/relay.h"
#include "proxy/primary/proxy.h"

/* An active target, by the clock: calls are spread, and a repeated one tries another.  NULL: there
 * is none. */
static const struct node *choose(const struct smap *m)
{
    const size_t count = smap_count(m, NODE_TARGET, NODE_ACTIVE);
    size_t turn = count > 0 ? clock_ms() % count : 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct node *n = &m->nodes[i];
        if (n->role == NODE_TARGET && n->state == NODE_ACTIVE && turn-- == 0)
            return n;
    }
    return NULL;
}

/* Where a target assembles batches; false: no target does, and that is replied. */
static bool put_url(struct http_request *req, struct buf *url)
{
    const struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct node *n = choose(&s->smap);
    if (n == NULL) {
        struct error err;
        error_set(&err, E_NO_TARGETS, "no target is active that could assemble the batch");
        http_reply_error(req, &err);
        return false;
    }
    buf_printf(url, "%s/v1/batch", n->public_url);
    return true;
}

void batch_send(struct http_request *req, const struct buf *document)
{
    _cleanup_buf_ struct buf url = BUF_INIT;
    if (!put_url(req, &url))
        return;
    buf_puts(&url, "?" AIS_REDIRECT);
    relay_document(http_user(req), req, HTTP_POST, buf_str(&url), document);
}

/* A redirect has no proof for so many objects: the token of a user goes through the proxy. */
static bool is_streamed(const struct http_request *req)
{
    const char *redirect = http_query(req, "redirect");
    return guard_user(req) != NULL || http_body_comes_once(req) ||
           (redirect != NULL && strcmp(redirect, "never") == 0);
}

static void batch_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter_objects(req);
    _cleanup_buf_ struct buf url = BUF_INIT;
    if (p == NULL || !put_url(req, &url))
        return;
    if (is_streamed(req))
        relay_start(p, req, buf_str(&url));
    else
        http_reply_redirect(req, buf_str(&url));
}

const struct http_route batch_routes[] = {
    {.name = "batch",
     .method = HTTP_POST,
     .pattern = "/v1/batch",
     .nets = NET_PUBLIC,
     .right = RIGHT_ANY,
     .begin = batch_begin,
     .summary = "Reads many objects, members and ranges: sends the client to a target that "
                "assembles them as one archive. Needs the right `read` on each object.",
     .query = HTTP_PARAMETERS({"redirect", "never: through the proxy; so are the calls of users"}),
     .body = "`{\"entries\": [{\"bucket\", \"object\", \"member\", \"offset\", \"length\", "
             "\"opaque\"}, …], \"on_missing\": \"fail\"|\"empty\", \"format\": \".tar\"|…, "
             "\"names\": \"bucket\"|\"object\", \"report\": true}`",
     .reply = "307 to the target; its reply is the archive, in the order asked for",
     .errors = "no_targets; of the target: those of object_get, invalid_json, too_large, "
               "overloaded"},
    {.name = NULL},
};
