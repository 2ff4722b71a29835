/* dfc_cluster_show, dfc_node_show. */
#include "api/dfc.h"

#include "api/call.h"
#include "api/failure.h"
#include "api/uri.h"
#include "common/jsonx.h"
#include "common/mem.h"

static int show(struct dfc_client *c, const char *origin, const char *path, const char *what,
                char **document, struct dfc_error *err)
{
    const struct call_small call = {.method = "GET", .twice_is_harmless = true, .origin = origin};
    _cleanup_(buf_done)
    struct buf full = BUF_INIT;
    buf_puts(&full, path);
    uri_query(&full, "what", what);
    return call_small(c, &call, &full, document, err);
}

int dfc_cluster_show(struct dfc_client *c, const char *what, char **document, struct dfc_error *err)
{
    return show(c, NULL, "/v1/cluster", what, document, err);
}

/* The node's public address out of the cluster's overview; malloc'ed, NULL where it has none. */
static char *node_origin(const char *overview, const char *node)
{
    _cleanup_json_ json_t *doc = NULL;
    size_t i;
    json_t *one;
    if (json_parse(overview, strlen(overview), &doc, NULL) != 0)
        return NULL;
    json_array_foreach(json_object_get(doc, "nodes"), i, one)
    {
        const char *id = json_string_value(json_object_get(one, "id"));
        const char *url = json_string_value(json_object_get(one, "public_url"));
        char *origin;
        if (id == NULL || url == NULL || strcmp(id, node) != 0)
            continue;
        return uri_endpoint(url, strlen(url), &origin, NULL) == DFC_OK ? origin : NULL;
    }
    return NULL;
}

int dfc_node_show(struct dfc_client *c, const char *node, const char *what, char **document,
                  struct dfc_error *err)
{
    _cleanup_free_ char *overview = NULL;
    int rc = dfc_cluster_show(c, NULL, &overview, err);
    if (rc != DFC_OK)
        return rc;
    _cleanup_free_ char *origin = node_origin(overview, node);
    if (origin == NULL)
        return failure_set(err, DFC_NOT_FOUND, E_NODE_NOT_FOUND, "no node is named '%s'", node);
    return show(c, origin, "/v1/daemon", what, document, err);
}
