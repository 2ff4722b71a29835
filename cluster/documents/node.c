#include "cluster/documents/node.h"

#include <string.h>

#include "cluster/documents/names.h"
#include "common/jsonx.h"
#include "hrw/hrw.h"

enum { URL_MAX = 512 };

static const char *const role_names[] = {[NODE_PROXY] = "proxy", [NODE_TARGET] = "target"};
static const char *const state_names[] = {
    [NODE_ACTIVE] = "active",
    [NODE_UNREACHABLE] = "unreachable",
    [NODE_MAINTENANCE] = "maintenance",
    [NODE_DECOMMISSIONING] = "decommissioning",
};

static const char *const lag_names[] = {
    [LAG_NONE] = "none",
    [LAG_RESTARTED] = "restarted",
    [LAG_MISSED] = "missed",
};

const char *node_lag_name(enum node_lag l)
{
    return lag_names[l];
}

int node_lag_from_name(const char *name, enum node_lag *l, struct error *err)
{
    for (size_t i = 0; i < sizeof lag_names / sizeof lag_names[0]; i++) {
        if (strcmp(lag_names[i], name) == 0) {
            *l = (enum node_lag)i;
            return 0;
        }
    }
    return error_set(err, E_INVALID, "'%.32s' is not a lag: none, restarted or missed", name);
}

const char *node_role_name(enum node_role r)
{
    return role_names[r];
}

int node_role_from_name(const char *name, enum node_role *r, struct error *err)
{
    for (size_t i = 0; i < sizeof role_names / sizeof role_names[0]; i++) {
        if (strcmp(role_names[i], name) == 0) {
            *r = (enum node_role)i;
            return 0;
        }
    }
    return error_set(err, E_INVALID, "'%.32s' is not a role: proxy or target", name);
}

const char *node_state_name(enum node_state s)
{
    return state_names[s];
}

int node_state_from_name(const char *name, enum node_state *s, struct error *err)
{
    for (size_t i = 0; i < sizeof state_names / sizeof state_names[0]; i++) {
        if (strcmp(state_names[i], name) == 0) {
            *s = (enum node_state)i;
            return 0;
        }
    }
    return error_set(err, E_INVALID,
                     "'%.32s' is not a node's state: active, unreachable, maintenance or "
                     "decommissioning",
                     name);
}

bool node_owns(const struct node *n)
{
    return n->role == NODE_TARGET && (n->state == NODE_ACTIVE || n->state == NODE_UNREACHABLE);
}

bool node_is_present(const struct node *n)
{
    return n->state != NODE_UNREACHABLE && n->absent_since == 0;
}

bool node_same_spec(const struct node *a, const struct node *b)
{
    return strcmp(a->id, b->id) == 0 && a->role == b->role && a->weight == b->weight &&
           strcmp(a->public_url, b->public_url) == 0 &&
           strcmp(a->control_url, b->control_url) == 0 && strcmp(a->data_url, b->data_url) == 0 &&
           strcmp(a->boot, b->boot) == 0;
}

bool node_equal(const struct node *a, const struct node *b)
{
    return node_same_spec(a, b) && a->state == b->state && a->since_ms == b->since_ms &&
           a->lag == b->lag && a->missed_since == b->missed_since &&
           a->gone_since == b->gone_since && a->absent_since == b->absent_since;
}

static void set_unless_0(json_t *doc, const char *field, uint64_t value)
{
    if (value != 0)
        json_object_set_new(doc, field, json_integer((json_int_t)value));
}

json_t *node_to_json(const struct node *n)
{
    json_t *doc =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:s, s:I}", "id", n->id, "role",
                  node_role_name(n->role), "state", node_state_name(n->state), "public_url",
                  n->public_url, "control_url", n->control_url, "data_url", n->data_url, "weight",
                  (json_int_t)n->weight, "boot", n->boot, "since", (json_int_t)n->since_ms);
    if (n->lag != LAG_NONE)
        json_object_set_new(doc, "lag", json_string(node_lag_name(n->lag)));
    set_unless_0(doc, "missed_since", n->missed_since);
    set_unless_0(doc, "gone_since", n->gone_since);
    set_unless_0(doc, "absent_since", n->absent_since);
    return doc;
}

/* An address of a listener, written as everybody will use it: paths are appended to it. */
static int url_check(const char *url, const char *path, const char *field, struct error *err)
{
    bool tls = strcmp(field, "public_url") == 0 && strncmp(url, "https://", 8) == 0;
    size_t len = strlen(url), scheme = tls ? 8 : 7;
    bool plain = (tls || strncmp(url, "http://", 7) == 0) && len > scheme && len <= URL_MAX &&
                 url[len - 1] != '/';
    for (size_t i = 0; plain && i < len; i++)
        plain = url[i] > ' ' && url[i] < 0x7f && strchr("\"<>\\^`{|}?#", url[i]) == NULL;
    if (plain)
        return 0;
    return error_set(
        err, E_INVALID,
        "field '%s%s%s' must be 'http://host:port' without a trailing slash (public_url "
        "also https://), at most "
        "%d bytes",
        path, path[0] != '\0' ? "." : "", field, URL_MAX);
}

static int node_urls_from_json(json_t *doc, const char *path, struct arena *a, struct node *out,
                               struct error *err)
{
    const struct {
        const char *field;
        const char **text;
        bool may_be_empty;
    } urls[] = {
        {"public_url", &out->public_url, false},
        {"control_url", &out->control_url, false},
        {"data_url", &out->data_url, out->role == NODE_PROXY}, /* no data listener there */
    };
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        const char *text = NULL;
        int r = urls[i].may_be_empty ? json_get_str(doc, path, urls[i].field, &text, err)
                                     : json_need_str(doc, path, urls[i].field, &text, err);
        if (r != 0)
            return r;
        if (text == NULL)
            text = "";
        if (text[0] != '\0' || !urls[i].may_be_empty)
            r = url_check(text, path, urls[i].field, err);
        if (r != 0)
            return r;
        *urls[i].text = arena_strdup(a, text);
    }
    return 0;
}

static int node_weight_from_json(json_t *doc, const char *path, struct node *out, struct error *err)
{
    uint64_t weight = 1024;
    int r = json_get_u64(doc, path, "weight", &weight, err);
    if (r != 0)
        return r;
    if (weight > UINT32_MAX)
        return error_set(err, E_INVALID, "field '%s%sweight' must be at most %u", path,
                         path[0] != '\0' ? "." : "", UINT32_MAX);
    out->weight = (uint32_t)weight;
    return 0;
}

static int node_lag_from_json(json_t *doc, const char *path, struct node *out, struct error *err)
{
    const char *lag = node_lag_name(LAG_NONE);
    int r;
    if ((r = json_get_str(doc, path, "lag", &lag, err)) != 0 ||
        (r = json_get_u64(doc, path, "missed_since", &out->missed_since, err)) != 0 ||
        (r = json_get_u64(doc, path, "gone_since", &out->gone_since, err)) != 0 ||
        (r = json_get_u64(doc, path, "absent_since", &out->absent_since, err)) != 0)
        return r;
    if ((r = node_lag_from_name(lag, &out->lag, err)) != 0)
        error_wrap(err, "%s", path[0] != '\0' ? path : "node");
    return r;
}

int node_from_json(json_t *doc, const char *path, struct arena *a, struct node *out,
                   struct error *err)
{
    *out = (struct node){.state = NODE_ACTIVE};
    const char *id, *role, *boot;
    const char *state = "active";
    int r;
    if ((r = json_need_str(doc, path, "id", &id, err)) != 0 ||
        (r = json_need_str(doc, path, "role", &role, err)) != 0 ||
        (r = json_need_str(doc, path, "boot", &boot, err)) != 0 ||
        (r = json_get_str(doc, path, "state", &state, err)) != 0 ||
        (r = json_get_i64(doc, path, "since", &out->since_ms, err)) != 0 ||
        (r = node_weight_from_json(doc, path, out, err)) != 0 ||
        (r = node_lag_from_json(doc, path, out, err)) != 0)
        return r;
    if ((r = node_id_check(id, err)) != 0 ||
        (r = node_role_from_name(role, &out->role, err)) != 0 ||
        (r = node_state_from_name(state, &out->state, err)) != 0) {
        error_wrap(err, "%s", path[0] != '\0' ? path : "node");
        return r;
    }
    if (node_id_check(boot, NULL) != 0)
        return error_set(err, E_INVALID, "field '%s%sboot' is not a boot id", path,
                         path[0] != '\0' ? "." : "");
    out->id = arena_strdup(a, id);
    out->boot = arena_strdup(a, boot);
    out->seed = hrw_seed(id);
    return node_urls_from_json(doc, path, a, out, err);
}
