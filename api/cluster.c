/* dfc_cluster_show, dfc_cluster_events, dfc_cluster_stats, dfc_whoami, dfc_node_*. */
#include "api/dfc.h"

#include "api/action.h"
#include "api/admin.h"
#include "api/failure.h"
#include "api/uri.h"
#include "common/jsonx.h"
#include "common/mem.h"

int dfc_cluster_show(struct dfc_client *c, const char *what, char **document, struct dfc_error *err)
{
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/cluster");
    uri_query(&path, "what", what);
    return show_call(c, NULL, &path, document, err);
}

int dfc_cluster_events(struct dfc_client *c, const char *after, uint32_t wait_ms, uint32_t limit,
                       char **document, struct dfc_error *err)
{
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/events");
    uri_query(&path, "after", after);
    if (limit > 0)
        uri_query_u64(&path, "limit", limit);
    if (wait_ms > 0) {
        _cleanup_free_ char *wait = xprintf("%ums", wait_ms);
        uri_query(&path, "wait", wait);
    }
    return show_call(c, NULL, &path, document, err);
}

int dfc_cluster_stats(struct dfc_client *c, uint32_t samples, bool nodes, char **document,
                      struct dfc_error *err)
{
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/cluster/stats");
    uri_query_u64(&path, "samples", samples);
    uri_query(&path, "nodes", nodes ? "true" : NULL);
    return show_call(c, NULL, &path, document, err);
}

int dfc_whoami(struct dfc_client *c, char **document, struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/auth/whoami");
    return call_small(c, &what, &path, document, err);
}

int dfc_node_show(struct dfc_client *c, const char *node, const char *what, char **document,
                  struct dfc_error *err)
{
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/daemon");
    uri_query(&path, "what", what);
    return show_call(c, node, &path, document, err);
}

int dfc_node_set(struct dfc_client *c, const char *node, const char *name, const char *value,
                 char **document, struct dfc_error *err)
{
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s, s:s}", "action", "setparam", "name", name, "value", value);
    if (doc == NULL)
        return failure_set(err, DFC_INVALID, E_INVALID, "the parameter is not UTF-8");
    _cleanup_free_ char *body = json_text(doc);
    const struct call_small call = {.method = "PUT", .body = body, .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/daemon");
    return admin_call(c, &call, node, &path, document, err);
}

int dfc_node_log(struct dfc_client *c, const char *node, uint64_t after, char **document,
                 struct dfc_error *err)
{
    const struct call_small call = {.method = "GET", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/daemon/log");
    uri_query_u64(&path, "after", after);
    return admin_call(c, &call, node, &path, document, err);
}

int dfc_node_act(struct dfc_client *c, const char *node, const char *action, bool force,
                 struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:s, s:{s:b}}", "action", action, "name", node,
                                           "value", "force", (int)force);
    if (doc == NULL)
        return failure_set(err, DFC_INVALID, E_NAME, "the name is not UTF-8");
    _cleanup_free_ char *body = json_text(doc);
    const struct call_small call = {.method = "PUT", .body = body, .twice_is_harmless = !force};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/cluster");
    return admin_call(c, &call, NULL, &path, NULL, err);
}

int dfc_node_remove(struct dfc_client *c, const char *node, struct dfc_error *err)
{
    _cleanup_free_ char *body = NULL;
    int rc = action_body("removenode", node, &body, err);
    if (rc != DFC_OK)
        return rc;
    const struct call_small call = {.method = "PUT", .body = body};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/cluster");
    return admin_call(c, &call, NULL, &path, NULL, err);
}

/* What is so already is no error, so that a call may be made twice; but not attach, which would say
 * that it is there. */
int dfc_node_mountpath(struct dfc_client *c, const char *node, const char *action, const char *path,
                       unsigned flags, char **document, struct dfc_error *err)
{
    bool lost = (flags & DFC_MOUNTPATH_LOST) != 0;
    _cleanup_(buf_done)
    struct buf full = BUF_INIT;
    _cleanup_json_ json_t *doc = json_pack("{s:s}", "action", action);
    if (path != NULL)
        json_object_set_new(doc, "value", json_pack("{s:s, s:b}", "path", path, "lost", (int)lost));
    if (flags & DFC_MOUNTPATH_CREATE)
        json_object_set_new(json_object_get(doc, "value"), "create", json_true());
    if (path != NULL && json_object_get(doc, "value") == NULL)
        return failure_set(err, DFC_INVALID, E_INVALID, "the path is not UTF-8");
    _cleanup_free_ char *body = json_text(doc);
    const struct call_small what = {
        .method = "PUT", .body = body, .twice_is_harmless = strcmp(action, "attach") != 0 && !lost};
    buf_puts(&full, "/v1/daemon/mountpaths");
    return admin_call(c, &what, node, &full, document, err);
}

/* A call to the node's own /v1/daemon/indexes. */
static int indexes(struct dfc_client *c, const char *node, const char *body, char **document,
                   struct dfc_error *err)
{
    const struct call_small call = {
        .method = body != NULL ? "PUT" : "GET", .body = body, .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/daemon/indexes");
    return admin_call(c, &call, node, &path, document, err);
}

int dfc_node_indexes(struct dfc_client *c, const char *node, char **document, struct dfc_error *err)
{
    return indexes(c, node, NULL, document, err);
}

int dfc_node_reindex(struct dfc_client *c, const char *node, const char *mountpath, char **document,
                     struct dfc_error *err)
{
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s}", "action", "reindex", "value", mountpath != NULL ? mountpath : "");
    if (doc == NULL)
        return failure_set(err, DFC_INVALID, E_INVALID, "the mountpath's name is not UTF-8");
    _cleanup_free_ char *body = json_text(doc);
    return indexes(c, node, body, document, err);
}
