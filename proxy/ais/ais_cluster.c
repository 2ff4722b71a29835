#include "proxy/ais/ais_cluster.h"

#include <string.h>

#include "access/guard.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "proxy/ais/ais_refused.h"
#include "proxy/ais/provider.h"
#include "proxy/primary/proxy.h"

enum { AIS_IN_MAINTENANCE = 1 << 2 }; /* of a node's flags: the SDK sends no reads there */

/* "http://127.0.0.1:8081": host and port of it. */
static json_t *net_info(const char *url)
{
    const char *scheme = strstr(url, "://");
    const char *host = scheme != NULL ? scheme + 3 : url;
    const char *colon = strrchr(host, ':');
    size_t len = colon != NULL ? (size_t)(colon - host) : strlen(host);
    return json_pack("{s:s%, s:s, s:s}", "node_hostname", host, len, "daemon_port",
                     colon != NULL ? colon + 1 : "", "direct_url", url);
}

/* The digest is for the SDK's placement, which is not ours: 63 bits, that every reader has. */
static json_t *snode(const struct node *n)
{
    bool is_proxy = n->role == NODE_PROXY;
    return json_pack("{s:s, s:s, s:o, s:i, s:I}", "daemon_id", n->id, "daemon_type",
                     is_proxy ? "proxy" : "target", "public_net", net_info(n->public_url), "flags",
                     n->state == NODE_ACTIVE ? 0 : AIS_IN_MAINTENANCE, "id_digest",
                     (json_int_t)(n->seed >> 1));
}

static json_t *map_of(const struct cluster_state *s, enum node_role role)
{
    json_t *map = json_object();
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role == role)
            json_object_set_new(map, n->id, snode(n));
    }
    return map;
}

static void reply_smap(struct http_request *req, const struct cluster_state *s)
{
    struct error err;
    const struct node *primary = s->primary != NULL ? smap_node(&s->smap, s->primary) : NULL;
    if (primary == NULL) {
        error_set(&err, E_NOT_READY, "this proxy knows no primary yet");
        http_reply_error(req, &err);
        return;
    }
    _cleanup_json_ json_t *doc = json_pack(
        "{s:o, s:o, s:o, s:I, s:s}", "tmap", map_of(s, NODE_TARGET), "pmap", map_of(s, NODE_PROXY),
        "proxy_si", snode(primary), "version", (json_int_t)s->version, "uuid", s->cluster_id);
    http_reply_json(req, 200, doc);
}

void ais_smap_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter(req);
    const char *what = http_query(req, "what");
    if (p == NULL)
        return;
    if (what == NULL || strcmp(what, "smap") != 0) {
        ais_refused_begin(req);
        return;
    }
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    reply_smap(req, s);
}

void ais_health_begin(struct http_request *req)
{
    if (proxy_enter(req) != NULL)
        http_reply_empty(req, 200);
}

void ais_buckets_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter(req);
    if (p == NULL)
        return;
    const char *asked = http_query(req, "provider");
    const char *provider = asked != NULL && asked[0] != '\0' ? asked : "ais";
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *list = json_array();
    for (size_t i = 0; i < s->bmd.count; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        if (provider_fits(b, provider) && guard_sees(req, b->name))
            json_array_append_new(list,
                                  json_pack("{s:s, s:s}", "name", b->name, "provider", provider));
    }
    http_reply_json(req, 200, list);
}
