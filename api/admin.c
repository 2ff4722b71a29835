#include "api/admin.h"

#include "api/failure.h"
#include "api/uri.h"
#include "common/jsonx.h"
#include "common/mem.h"

static const struct call_small show = {.method = "GET", .twice_is_harmless = true};

/* With the nodes' control addresses, and what else control listeners alone tell. */
static int control_endpoint_call(struct dfc_client *c, const struct call_small *what,
                                 struct buf *path, char **text, struct dfc_error *err)
{
    struct call_small full = *what;
    full.origins = client_control_endpoints(c);
    full.administers = true;
    return call_small(c, &full, path, text, err);
}

static int cluster_nodes(struct dfc_client *c, json_t **doc, struct dfc_error *err)
{
    _cleanup_free_ char *overview = NULL;
    struct error e = ERROR_INIT;
    int rc = dfc_cluster_show(c, NULL, &overview, err);
    if (rc != DFC_OK)
        return rc;
    if (json_parse(overview, strlen(overview), doc, &e) != 0)
        return failure_common(err, DFC_FAILED, &e);
    return DFC_OK;
}

/* NULL where it has none. */
static char *origin_of(json_t *node, const char *field)
{
    const char *url = json_string_value(json_object_get(node, field));
    char *origin;
    return url != NULL && uri_endpoint(url, strlen(url), &origin, NULL) == DFC_OK ? origin : NULL;
}

static json_t *node_named(json_t *doc, const char *id)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(doc, "nodes"), i, one)
    {
        const char *name = json_string_value(json_object_get(one, "id"));
        if (name != NULL && strcmp(name, id) == 0)
            return one;
    }
    return NULL;
}

int node_public_origin(struct dfc_client *c, const char *node, char **origin, struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int rc = cluster_nodes(c, &doc, err);
    if (rc != DFC_OK)
        return rc;
    *origin = origin_of(node_named(doc, node), "public_url");
    if (*origin == NULL)
        return failure_set(err, DFC_NOT_FOUND, E_NODE_NOT_FOUND, "no node is named '%s'", node);
    return DFC_OK;
}

/* ---- control listeners ---- */

struct origins {
    char **list; /* NULL at the end */
    size_t count;
};

static void origins_done(struct origins *o)
{
    for (size_t i = 0; i < o->count; i++)
        free(o->list[i]);
    free(o->list);
}

static void origins_add(struct origins *o, json_t *node)
{
    char *origin = origin_of(node, "control_url");
    if (origin == NULL)
        return;
    o->list = xrealloc(o->list, (o->count + 2) * sizeof *o->list);
    o->list[o->count++] = origin;
    o->list[o->count] = NULL;
}

static void origins_add_proxies(struct origins *o, json_t *doc)
{
    size_t i;
    json_t *one;
    for (int primary = 1; primary >= 0; primary--) {
        json_array_foreach(json_object_get(doc, "nodes"), i, one)
        {
            const char *role = json_string_value(json_object_get(one, "role"));
            if (role != NULL && strcmp(role, "proxy") == 0 &&
                json_is_true(json_object_get(one, "primary")) == primary)
                origins_add(o, one);
        }
    }
}

static int control_origins(struct dfc_client *c, const char *node, struct origins *o,
                           struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int rc = cluster_nodes(c, &doc, err);
    if (rc != DFC_OK)
        return rc;
    if (node != NULL)
        origins_add(o, node_named(doc, node));
    else
        origins_add_proxies(o, doc);
    if (o->count > 0)
        return DFC_OK;
    if (node != NULL)
        return failure_set(err, DFC_NOT_FOUND, E_NODE_NOT_FOUND, "no node is named '%s'", node);
    return failure_set(err, DFC_FAILED, E_NET, "the cluster names no control address of a proxy");
}

/* The key alone opens no public listener. */
static int say_how(const struct dfc_client *c, struct dfc_error *err, int rc)
{
    if (err == NULL || rc != DFC_DENIED || client_identity(c) != NULL)
        return rc;
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used,
             "; or give the control listener of a proxy, --control URL, and the cluster key");
    return rc;
}

/* Most often the reader stands on the wrong network. */
static int say_where(struct dfc_error *err, int rc)
{
    if (err == NULL || err->status != 0 || (rc != DFC_UNREACHABLE && rc != DFC_TIMED_OUT))
        return rc;
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used,
             "; administration is on the control network: run this where that can be reached");
    return rc;
}

int control_call(struct dfc_client *c, const struct call_small *what, const char *node,
                 struct buf *path, char **text, struct dfc_error *err)
{
    _cleanup_(origins_done)
    struct origins o = {0};
    if (node == NULL && client_control_endpoints(c) != NULL)
        return say_where(err, control_endpoint_call(c, what, path, text, err));
    int rc = control_origins(c, node, &o, err);
    if (rc != DFC_OK)
        return say_how(c, err, rc);
    struct call_small full = *what;
    full.origins = (const char *const *)o.list;
    full.administers = true;
    full.node = node;
    return say_where(err, call_small(c, &full, path, text, err));
}

/* A node with an admin listener has operators' calls there. */
static int node_admin_origin(struct dfc_client *c, const char *node, char **origin,
                             struct dfc_error *err)
{
    _cleanup_free_ char *public = NULL, *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    struct error e = ERROR_INIT;
    int rc = node_public_origin(c, node, &public, err);
    if (rc != DFC_OK)
        return rc;
    const char *const origins[] = {public, NULL};
    struct call_small what = show;
    struct buf path = BUF_INIT;
    what.origins = origins;
    buf_puts(&path, "/v1/daemon");
    if ((rc = call_small(c, &what, &path, &text, err)) != DFC_OK)
        return rc;
    if (json_parse(text, strlen(text), &doc, &e) != 0)
        return failure_common(err, DFC_FAILED, &e);
    *origin = origin_of(doc, "admin_url");
    if (*origin == NULL)
        *origin = steal(public);
    return DFC_OK;
}

int admin_call(struct dfc_client *c, const struct call_small *what, const char *node,
               struct buf *path, char **text, struct dfc_error *err)
{
    if (client_identity(c) == NULL || client_control_endpoints(c) != NULL)
        return control_call(c, what, node, path, text, err);
    _cleanup_free_ char *origin = NULL;
    int rc = node != NULL ? node_admin_origin(c, node, &origin, err) : DFC_OK;
    if (rc != DFC_OK)
        return rc;
    const char *const origins[] = {origin, NULL};
    struct call_small full = *what;
    full.origins = origin != NULL ? origins : NULL;
    return call_small(c, &full, path, text, err);
}

int show_call(struct dfc_client *c, const char *node, struct buf *path, char **text,
              struct dfc_error *err)
{
    if (client_control_endpoints(c) != NULL)
        return control_call(c, &show, node, path, text, err);
    _cleanup_free_ char *origin = NULL;
    int rc = node != NULL ? node_public_origin(c, node, &origin, err) : DFC_OK;
    if (rc != DFC_OK)
        return rc;
    const char *const origins[] = {origin, NULL};
    struct call_small full = show;
    full.origins = origin != NULL ? origins : NULL;
    return call_small(c, &full, path, text, err);
}
