#include "proxy/http/daemon_routes.h"

#include <string.h>

#include "common/build.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "net/daemon_log.h"
#include "net/daemon_metrics.h"
#include "net/daemon_params.h"
#include "proxy/primary/gauges.h"
#include "proxy/primary/proxy.h"

/* --- /v1/daemon ------------------------------------------------------------------------------ */

static json_t *info_json(struct proxy *p, const struct cluster_state *s)
{
    return json_pack("{s:s, s:s, s:b, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:s*}",
                     "id", p->id, "role", "proxy", "primary", (int)proxy_is_primary(p), "pid",
                     (int)getpid(), "boot", p->boot, "release", build_release(), "commit",
                     build_commit(), "public_url", p->public_url, "control_url", p->control_url,
                     "data_url", "", "cluster", s->cluster_id, "term", (json_int_t)s->term,
                     "version", (json_int_t)s->version, "admin_url", p->admin_url);
}

/* The metrics by name, labels included: what /metrics says, for those who prefer JSON. */
static json_t *stats_json(struct proxy *p)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    json_t *stats = json_object();
    char *rest;
    gauges_update(p);
    daemon_metrics_text(&text);
    buf_putc(&text, '\0');
    for (char *line = strtok_r(text.data, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *space = strrchr(line, ' ');
        double value;
        if (line[0] == '#' || space == NULL)
            continue;
        *space = '\0';
        if (parse_double(space + 1, &value, NULL) == 0)
            json_object_set_new(stats, line, json_real(value));
    }
    return stats;
}

static struct daemon_params params_of(struct proxy *p)
{
    return (struct daemon_params){.rows = proxy_param_rows,
                                  .values = &p->params,
                                  .live = proxy_params_live,
                                  .sources = p->sources};
}

static json_t *daemon_part(struct proxy *p, const struct cluster_state *s, const char *what)
{
    if (strcmp(what, "info") == 0)
        return info_json(p, s);
    if (strcmp(what, "smap") == 0 || strcmp(what, "bmd") == 0)
        return state_part_to_json(s, what);
    if (strcmp(what, "config") == 0)
        return params_json(proxy_param_rows, &p->params);
    const struct daemon_params params = params_of(p);
    if (strcmp(what, "params") == 0)
        return daemon_params_json(&params);
    if (strcmp(what, "stats") == 0)
        return stats_json(p);
    return NULL;
}

static void daemon_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter(req);
    const char *what = http_query(req, "what");
    if (p == NULL)
        return;
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc = daemon_part(p, s, what != NULL ? what : "info");
    if (doc != NULL) {
        if ((http_listener(req) & NET_CLIENTS) != 0)
            daemon_params_hide(doc);
        http_reply_json(req, 200, doc);
        return;
    }
    struct error err;
    error_set(&err, E_INVALID,
              "parameter 'what': '%.64s' is not info, smap, bmd, config, params or stats", what);
    http_reply_error(req, &err);
}

static void set_body(struct http_request *req, const char *data, size_t len)
{
    const struct daemon_params params = params_of(http_user(req));
    daemon_params_set(req, &params, data, len);
}

static void set_begin(struct http_request *req)
{
    const struct proxy *p = proxy_enter(req);
    if (p != NULL)
        http_collect_body(req, p->params.body_max, set_body);
}

/* --- the rest -------------------------------------------------------------------------------- */

static void health_begin(struct http_request *req)
{
    struct proxy *p = http_user(req);
    const char *live = http_query(req, "live");
    const char *synced = http_query(req, "synced");
    bool leaving = atomic_load(&p->leaving), ready = atomic_load(&p->ready) && !leaving;
    if (synced != NULL && strcmp(synced, "true") == 0)
        ready = ready && (atomic_load(&p->heard) || proxy_is_primary(p));
    if (!ready && (live == NULL || strcmp(live, "true") != 0)) {
        struct error err;
        error_set(&err, E_NOT_READY, "proxy '%s' is %s", p->id,
                  leaving                  ? "stopping"
                  : atomic_load(&p->ready) ? "waiting for the primary's word"
                                           : "starting");
        http_reply_error(req, &err);
        return;
    }
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s, s:s, s:I, s:I}", "status", ready ? "ready" : "not_ready", "id", p->id,
                  "role", "proxy", "term", (json_int_t)s->term, "version", (json_int_t)s->version);
    http_reply_json(req, 200, doc);
}

static void metrics_begin(struct http_request *req)
{
    gauges_update(http_user(req));
    daemon_metrics_reply(req);
}

static void api_begin(struct http_request *req)
{
    _cleanup_json_ json_t *doc = http_routes_json(proxy_routes);
    http_reply_json(req, 200, doc);
}

const struct http_route daemon_routes[] = {
    {.name = "daemon_get",
     .method = HTTP_GET,
     .pattern = "/v1/daemon",
     .nets = NET_ALL,
     .right = RIGHT_SEE,
     .begin = daemon_begin,
     .summary = "What this daemon is, or one of the documents that it has.",
     .query = HTTP_PARAMETERS({"what", "info (default), smap, bmd, config (its parameters), params "
                                       "(with types, bounds and meanings) or stats"}),
     .body = "",
     .reply = "info: `{\"id\", \"role\", \"primary\", \"pid\", \"boot\", \"release\", \"commit\", "
              "\"public_url\", \"control_url\", \"data_url\", \"cluster\", \"term\", "
              "\"version\", \"admin_url\" (with `admin_port`)}`",
     .errors = ""},
    DAEMON_PARAMS_ROUTE(set_begin),
    DAEMON_LOG_ROUTE,
    {.name = "health_get",
     .method = HTTP_GET,
     .pattern = "/v1/health",
     .nets = NET_ALL,
     .open = true, /* also for who watches a node from outside */
     .right = RIGHT_NONE,
     .begin = health_begin,
     .summary = "Is this daemon ready to serve?",
     .query = HTTP_PARAMETERS({"live", "true: 200 as soon as the process answers"},
                              {"synced", "true: and has it a state of the primary in this run?"}),
     .body = "",
     .reply = "`{\"status\": \"ready\", \"id\", \"role\", \"term\", \"version\"}`",
     .errors = "not_ready"},
    {.name = "metrics_get",
     .method = HTTP_GET,
     .pattern = "/metrics",
     .nets = NET_ALL,
     .open = true, /* a collector has no key, and reads nothing else */
     .right = RIGHT_SEE,
     .begin = metrics_begin,
     .summary = "The metrics in Prometheus' text format.",
     .body = "",
     .reply = "text",
     .errors = ""},
    {.name = "api_get",
     .method = HTTP_GET,
     .pattern = "/v1/api",
     .nets = NET_ALL,
     .right = RIGHT_ANY,
     .begin = api_begin,
     .summary = "This table, as JSON.",
     .body = "",
     .reply = "a list of routes",
     .errors = ""},
    {.name = NULL},
};
