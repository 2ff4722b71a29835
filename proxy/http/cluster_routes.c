#include "proxy/http/cluster_routes.h"

#include <string.h>

#include "cluster/props/backend_endpoints.h"
#include "cluster/documents/layout.h"
#include "cluster/placement/protection.h"
#include "cluster/documents/settings.h"
#include "common/build.h"
#include "common/cluster_health.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/primary/cluster_view.h"
#include "proxy/primary/node_actions.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/recovery.h"
#include "proxy/watch/scrape.h"

enum { SETTINGS_MAX = 64 };

/* --- the cluster's document ------------------------------------------------------------------ */

static void reply_view(struct http_request *req, bool primary_answers)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc = cluster_view(p, s, primary_answers);
    _cleanup_json_ json_t *verdict = cluster_health_judge(doc);
    json_object_update(doc, verdict);
    http_reply_json(req, 200, doc);
}

/* The primary's document says more.  Without it a follower tells what it knows itself. */
static void primary_answered(void *arg, struct http_result *r)
{
    struct http_request *req = arg;
    if (http_result_error(r, "", NULL) == 0)
        http_reply_data(req, 200, "application/json", r->body.data, r->body.len);
    else
        reply_view(req, false);
}

static void ask_primary(struct http_request *req, struct proxy *p)
{
    _cleanup_(metastore_primary_done)
    struct metastore_primary primary = {0};
    if (!proxy_find_primary(p, &primary)) {
        reply_view(req, false);
        return;
    }
    _cleanup_free_ char *url = xprintf("%s/v1/cluster", primary.control_url);
    const struct http_call call = {
        .method = HTTP_GET,
        .url = url,
        .node = primary.id,
        .reply_max = p->params.state_max,
        .total_timeout_ms = p->params.connect_timeout,
        .request_id = http_request_id(req),
    };
    http_call_start(p->client, &call, primary_answered, req);
}

/* All change at run time. */
static json_t *settings_view(const struct cluster_state *s)
{
    const char *live[SETTINGS_MAX + 1] = {NULL};
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    for (size_t i = 0; i < SETTINGS_MAX && cluster_settings_rows[i].name != NULL; i++)
        live[i] = cluster_settings_rows[i].name;
    json_t *rows = params_describe(cluster_settings_rows, &settings, live);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        bool is_set = config_get(&s->config, cluster_settings_rows[i].name) != NULL;
        json_object_set_new(json_array_get(rows, i), "source",
                            json_string(is_set ? "cluster" : "default"));
    }
    return json_pack("{s:o}", "params", rows);
}

/* A backup has all of the state: who asks at the control listener has the cluster key. */
static json_t *part_view(const struct http_request *req, const struct cluster_state *s,
                         const char *what)
{
    if (strcmp(what, "settings") == 0)
        return settings_view(s);
    if (strcmp(what, "scrape") == 0)
        return scrape_view(s);
    if (strcmp(what, "state") == 0 && http_listener(req) == NET_CONTROL)
        return state_to_json(s);
    return state_part_to_json(s, what);
}

static void reply_part(struct http_request *req, struct proxy *p, const char *what)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc = part_view(req, s, what);
    if (doc != NULL) {
        proxy_reply_masked(req, doc);
        return;
    }
    struct error err;
    error_set(
        &err, E_INVALID,
        "parameter 'what': '%.64s' is not state, smap, bmd, config, access, settings, jobs or "
        "scrape",
        what);
    http_reply_error(req, &err);
}

static void get_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter(req);
    const char *what = http_query(req, "what");
    if (p == NULL)
        return;
    if (what != NULL)
        reply_part(req, p, what);
    else if (proxy_is_primary(p))
        reply_view(req, true);
    else
        ask_primary(req, p);
}

/* --- actions --------------------------------------------------------------------------------- */

static void reply_changed(struct http_request *req, const struct error *err, const char *part)
{
    struct proxy *p = http_user(req);
    if (err != NULL) {
        proxy_reply_error(req, err);
        return;
    }
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc = state_part_to_json(s, part);
    http_reply_json(req, 200, doc);
}

static void config_set(void *arg, const struct error *err)
{
    reply_changed(arg, err, "config");
}

static void node_removed(void *arg, const struct error *err)
{
    reply_changed(arg, err, "smap");
}

/* A value as text, whatever JSON type it came in; NULL (also for null): back to the default. */
static int value_text(json_t *value, char **out, struct error *err)
{
    *out = NULL;
    if (value == NULL || json_is_null(value))
        return 0;
    if (json_is_object(value) || json_is_array(value))
        return error_set(err, E_JSON, "field 'value' must be text, a number or a boolean");
    *out = json_is_string(value) ? xstrdup(json_string_value(value)) : json_text(value);
    return 0;
}

static int setconfig(struct http_request *req, const char *name, json_t *value, struct error *err)
{
    _cleanup_free_ char *text = NULL;
    int r = value_text(value, &text, err);
    if (r != 0)
        return r;
    const struct command cmd = {.kind = CMD_CONFIG_SET, .name = name, .text = text};
    proxy_commit_settled(http_user(req), &cmd, config_set, req);
    return 0;
}

/* One that leaves in order has what has not been moved off yet, whether it answers or not. */
static int check_removable(struct proxy *p, const char *name, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct node *n = smap_node(&s->smap, name);
    if (n == NULL || layout_is_settled(&s->smap) ||
        (n->state != NODE_MAINTENANCE && n->state != NODE_DECOMMISSIONING))
        return 0;
    return error_set(
        err, E_NODE_STATE,
        "target '%s' is in state %s, and may have what is not moved off yet: wait for the "
        "rebalance (dfcctl job ls --kind rebalance); or give that up (dfcctl node "
        "decommission %s --force)",
        name, node_state_name(n->state), name);
}

/* For a node that will not come back: what only it holds is given up. */
static int removenode(struct http_request *req, const char *name, json_t *value, struct error *err)
{
    if (value != NULL)
        return error_set(err, E_JSON, "field 'value' is not known here");
    int r = check_removable(http_user(req), name, err);
    if (r != 0)
        return r;
    const struct command cmd = {.kind = CMD_NODE_REMOVE, .name = name};
    proxy_commit_settled(http_user(req), &cmd, node_removed, req);
    return 0;
}

static int put_action(struct http_request *req, const char *data, size_t len, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *action = NULL;
    const char *name = NULL;
    int r;
    if ((r = json_parse(data, len, &doc, err)) != 0)
        return r;
    if (!json_is_object(doc))
        return error_set(err, E_JSON, "the body must be an object with the field 'action'");
    if ((r = json_need_str(doc, "", "action", &action, err)) != 0)
        return r;
    bool sets = strcmp(action, "setconfig") == 0;
    if ((r = json_need_str(doc, "", "name", &name, err)) != 0)
        return r;
    if (node_action(req, action, name, json_object_get(doc, "value"), &r, err))
        return r;
    if (!sets && strcmp(action, "removenode") != 0)
        return error_set(err, E_INVALID,
                         "field 'action': '%.64s' is not setconfig, startmaintenance, "
                         "stopmaintenance, decommission or removenode",
                         action);
    return (sets ? setconfig : removenode)(req, name, json_object_get(doc, "value"), err);
}

static void put_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    if (put_action(req, data, len, &err) != 0)
        http_reply_error(req, &err);
}

static void put_begin(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, p->params.body_max, put_body);
}

const struct http_route cluster_routes[] = {
    {.name = "cluster_get",
     .method = HTTP_GET,
     .pattern = "/v1/cluster",
     .nets = NET_PUBLIC | NET_CONTROL,
     .right = RIGHT_SEE,
     .begin = get_begin,
     .summary = "The cluster: its nodes and how they are; or one of its documents.",
     .query =
         HTTP_PARAMETERS({"what", "state, smap, bmd, config, access, settings (all, "
                                  "with types, bounds and meanings), jobs or scrape (the nodes "
                                  "for Prometheus' http_sd_configs)"}),
     .body = "",
     .reply = "`{\"cluster\", \"term\", \"version\", \"primary\", \"healthy\", \"health\": green, "
              "yellow or red, \"reasons\": [{\"health\", \"node\", \"text\"}, the worst first], "
              "\"nodes\": "
              "[{\"id\", \"role\", \"state\", \"primary\", \"public_url\", \"control_url\", "
              "\"data_url\", \"weight\", \"since_ms\", \"lag\" (restarted or missed: its copies "
              "are to be "
              "repaired), \"absent\" (true: its copies are passed over), \"silent_ms\" "
              "(since it last reported), \"late\" (true: active, and silent for longer than "
              "keepalive_late, and for a third of keepalive_timeout), \"capacity\", "
              "\"certificate_left_s\", \"electable\" (a proxy that may be elected primary), "
              "\"version\", \"release\", \"commit\"}], \"buckets\", "
              "\"jobs_running\", "
              "\"refused\" (nodes that know later documents, or another cluster's), "
              "\"protection\": {\"one_copy\", \"protected\", \"degraded\", \"unavailable\": "
              "buckets}, \"at_risk\": [{\"bucket\", \"protection\", \"why\"}, the first 20], "
              "\"without_credentials\": [{\"bucket\", \"why\"}: buckets whose endpoint is not in "
              "backend_endpoints, the first 20], \"public_auth\", \"open_to_all\", "
              "\"sealed_by_old_key\": secrets}`",
     .errors = ""},
    {.name = "cluster_action",
     .method = HTTP_PUT,
     .pattern = "/v1/cluster",
     .nets = NET_CONTROL,
     .changes = true,
     .admin = true,
     .right = RIGHT_OPERATE,
     .begin = put_begin,
     .summary = "setconfig changes a cluster-wide setting (without a value, or with null, sets it "
                "back); startmaintenance moves a target's objects off, and stopmaintenance back; "
                "decommission moves them off and lets the target leave; removenode removes an "
                "unreachable node from the map, and gives up what only that node has.",
     .body = "`{\"action\": \"setconfig\", \"name\": …, \"value\": …}`, `{\"action\": "
             "\"removenode\", \"name\": id}`, `{\"action\": \"startmaintenance\", \"name\": id, "
             "\"value\": {\"force\": false}}` (also stopmaintenance and decommission)",
     .reply = "200 and the document that was changed: config or smap",
     .errors = "not_found invalid_argument invalid_json node_not_found node_state no_space"},
    {.name = NULL},
};
