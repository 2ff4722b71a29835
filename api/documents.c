/* dfc_documents_*, dfc_cluster_set: administration. */
#include "api/dfc.h"

#include "api/admin.h"
#include "api/failure.h"
#include "api/uri.h"
#include "common/jsonx.h"
#include "common/mem.h"

static const char path_of_documents[] = "/v1/cluster/documents";

int dfc_documents_copies(struct dfc_client *c, const char *cluster, const char *node,
                         char **document, struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, path_of_documents);
    uri_query(&path, "cluster", cluster);
    uri_query(&path, "node", node);
    return admin_call(c, &what, NULL, &path, document, err);
}

/* On the control listener the document is whole: URLs have their queries. */
int dfc_documents_state(struct dfc_client *c, char **document, struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/cluster?what=state");
    return control_call(c, &what, NULL, &path, document, err);
}

/* All of them say what must hold before, or find that it is done already. */
int dfc_documents_act(struct dfc_client *c, const char *action, const char *value, char **document,
                      struct dfc_error *err)
{
    _cleanup_free_ char *body = xprintf("{\"action\": \"%s\", \"value\": %s}", action, value);
    const struct call_small what = {.method = "POST", .body = body, .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, path_of_documents);
    return admin_call(c, &what, NULL, &path, document, err);
}

int dfc_cluster_set(struct dfc_client *c, const char *name, const char *value, char **document,
                    struct dfc_error *err)
{
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s, s:s?}", "action", "setconfig", "name", name, "value", value);
    if (doc == NULL)
        return failure_set(err, DFC_INVALID, E_INVALID, "the setting is not UTF-8");
    _cleanup_free_ char *body = json_text(doc);
    const struct call_small what = {.method = "PUT", .body = body, .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/cluster");
    return admin_call(c, &what, NULL, &path, document, err);
}
