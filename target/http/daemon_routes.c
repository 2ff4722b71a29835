#include "target/http/daemon_routes.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cluster/placement/owners.h"
#include "common/build.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/metrics.h"
#include "io/meter.h"
#include "net/daemon_log.h"
#include "net/daemon_metrics.h"
#include "net/daemon_params.h"
#include "target/http/gauges.h"
#include "target/node/state_sync.h"
#include "target/copies/unrecoverable.h"
#include "target/store/quarantine.h"
#include "target/node/quotas.h"
#include "target/node/readiness.h"
#include "target/store/summary.h"
#include "target/node/target.h"

static void reply_json(struct http_request *req, json_t *doc)
{
    http_reply_json(req, 200, doc);
    json_decref(doc);
}

/* --- /v1/daemon ------------------------------------------------------------------------------- */

static json_t *info_json(struct target *t, const struct cluster_state *s)
{
    return json_pack("{ss ss si ss ss ss ss ss ss ss sI sI ss*}", "id", t->id, "role",
                     node_role_name(NODE_TARGET), "pid", (int)getpid(), "boot", t->boot, "release",
                     build_release(), "commit", build_commit(), "cluster", s->cluster_id,
                     "public_url", t->urls[LISTEN_PUBLIC], "control_url", t->urls[LISTEN_CONTROL],
                     "data_url", t->urls[LISTEN_DATA], "term", (json_int_t)s->term, "version",
                     (json_int_t)s->version, "admin_url", t->urls[LISTEN_ADMIN]);
}

static json_t *config_json(struct target *t, const struct cluster_state *s)
{
    (void)s;
    return params_json(target_param_rows, &t->params);
}

static struct daemon_params params_of(struct target *t)
{
    return (struct daemon_params){.rows = target_param_rows,
                                  .values = &t->params,
                                  .live = target_params_live,
                                  .sources = t->sources};
}

static json_t *described_json(struct target *t, const struct cluster_state *s)
{
    (void)s;
    const struct daemon_params params = params_of(t);
    return daemon_params_json(&params);
}

/* What the disk has done in the last minute or so. */
static json_t *load_json(struct mountpath *mp)
{
    struct meter_load load;
    meter_load(mp->meter, clock_ms(), &load);
    double seconds = load.window_ms > 0 ? (double)load.window_ms / 1000 : 1;
    json_t *doc =
        json_pack("{sI sI sf}", "window_ms", (json_int_t)load.window_ms, "queue",
                  (json_int_t)load.queue, "sent_bytes_s", (double)load.sent_bytes / seconds);
    for (size_t i = 0; i < METER_OPS; i++) {
        json_t *op =
            json_pack("{sf sf sI sI}", "ops_s", (double)load.ops[i].count / seconds, "bytes_s",
                      (double)load.ops[i].bytes / seconds, "p50_us", (json_int_t)load.ops[i].p50_us,
                      "p99_us", (json_int_t)load.ops[i].p99_us);
        json_object_set_new(doc, meter_op_name((enum meter_op)i), op);
    }
    return doc;
}

static void add_open_json(json_t *doc, struct mountpath *mp)
{
    uint64_t total = 0, available = 0;
    struct error err = ERROR_INIT, index = ERROR_INIT;
    int code = mountpath_capacity(mp, &total, &available, &err);
    json_object_update_new(doc,
                           json_pack("{ss sI sI sI}", "io", disk_backend(mp->disk), "total_bytes",
                                     (json_int_t)total, "available_bytes", (json_int_t)available,
                                     "io_errors", (json_int_t)metric_value(mp->errors)));
    uint64_t quarantined;
    if (quarantine_count(mp, &quarantined, NULL) == 0)
        json_object_set_new(doc, "quarantined", json_integer((json_int_t)quarantined));
    json_object_set_new(doc, "load", load_json(mp));
    if (code != 0)
        json_object_set_new(doc, "error", json_string_escaped(err.message));
    if (index_check(mp->index, &index) != 0)
        json_object_set_new(doc, "index_error", json_string_escaped(index.message));
}

static json_t *mountpath_json(const struct roster_member *m, struct mountpath *mp_or_null)
{
    json_t *doc =
        json_pack("{ss ss ss sI sI}", "id", m->id, "path", m->path, "state", roster_state_name(m),
                  "weight", (json_int_t)m->weight, "since_ms", (json_int_t)m->since_ms);
    if (m->why != NULL)
        json_object_set_new(doc, "why", json_string_escaped(m->why));
    if (m->counted) {
        json_object_set_new(doc, "objects", json_integer((json_int_t)m->objects));
        json_object_set_new(doc, "bytes", json_integer((json_int_t)m->bytes));
    }
    if (mp_or_null != NULL)
        add_open_json(doc, mp_or_null);
    return doc;
}

json_t *daemon_mountpaths_json(struct target *t)
{
    json_t *list = json_array();
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    for (size_t i = 0; i < set->roster->count; i++)
        json_array_append_new(list, mountpath_json(&set->roster->members[i], set->each[i]));
    return json_pack("{so sb sI}", "mountpaths", list, "settled", (int)set->settled, "generation",
                     (json_int_t)set->roster->generation);
}

static json_t *mountpaths_json(struct target *t, const struct cluster_state *s)
{
    (void)s;
    return daemon_mountpaths_json(t);
}

static json_t *stats_json(struct target *t, const struct cluster_state *s)
{
    (void)s;
    uint64_t total = 0, available = 0;
    struct error err = ERROR_INIT;
    if (mountpaths_capacity(t->mountpaths, &total, &available, &err) != 0)
        log_warn("capacity unknown", lerr(&err));
    return json_pack("{sI sI sI sI sI sI sI}", "read", (json_int_t)metric_value(t->reads),
                     "read_bytes", (json_int_t)metric_value(t->read_bytes), "stored",
                     (json_int_t)metric_value(metric_get(M_object_put_total, NULL)), "stored_bytes",
                     (json_int_t)metric_value(metric_get(M_object_put_bytes_total, NULL)),
                     "deleted", (json_int_t)metric_value(metric_get(M_object_delete_total, NULL)),
                     "total_bytes", (json_int_t)total, "available_bytes", (json_int_t)available);
}

static json_t *state_part(const struct cluster_state *s, const char *part)
{
    return state_part_to_json(s, part);
}

static json_t *smap_json(struct target *t, const struct cluster_state *s)
{
    (void)t;
    return state_part(s, "smap");
}

static json_t *bmd_json(struct target *t, const struct cluster_state *s)
{
    (void)t;
    return state_part(s, "bmd");
}

static const struct {
    const char *what;
    json_t *(*json)(struct target *t, const struct cluster_state *s);
} views[] = {{"info", info_json},  {"params", described_json}, {"config", config_json},
             {"smap", smap_json},  {"bmd", bmd_json},          {"mountpaths", mountpaths_json},
             {"stats", stats_json}};

/* --- what=summary, what=cached: by a worker, since they walk the indexes ---------------------- */

/* What this target counts for the bucket's quota; NULL: it has none. */
static json_t *quota_used_json(struct target *t, const struct bucket *b)
{
    if (!bucket_props_have_quota(&b->props))
        return NULL;
    const struct quota_amount own = quotas_own(t->quotas, b->id);
    return json_pack("{sI sI}", "objects", (json_int_t)own.objects, "bytes", (json_int_t)own.bytes);
}

static json_t *summary_json(struct target *t, const struct summary *sum)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    json_t *list = json_array();
    for (size_t i = 0; i < sum->count; i++) {
        const struct summary_row *row = &sum->rows[i];
        const struct bucket *b = bmd_bucket_by_id(&s->bmd, row->bucket_id);
        if (b == NULL) /* destroyed, and being removed */
            continue;
        json_t *names = json_array();
        size_t lost = unrecoverable_of_bucket(t->unrecoverable, row->bucket_id, names);
        json_array_append_new(
            list, json_pack("{ss sI sI sI sI sI sI sI sI sI so so*}", "name", b->name, "id",
                            (json_int_t)row->bucket_id, "objects", (json_int_t)row->objects,
                            "bytes", (json_int_t)row->bytes, "internal", (json_int_t)row->internal,
                            "internal_bytes", (json_int_t)row->internal_bytes, "slices",
                            (json_int_t)row->slices, "sliced", (json_int_t)row->sliced, "pending",
                            (json_int_t)row->pending, "lost", (json_int_t)lost, "lost_names", names,
                            "quota_used", quota_used_json(t, b)));
    }
    char mark[17];
    snprintf(mark, sizeof mark, "%016" PRIx64, sum->pending_mark);
    return json_pack("{so ss}", "buckets", list, "pending_mark", mark);
}

struct acting {
    const struct target *target;
    const struct cluster_state *state;
};

static bool acts(void *ctx, uint64_t bucket_id, const char *name)
{
    const struct acting *a = ctx;
    const struct bucket *b = bmd_bucket_by_id(&a->state->bmd, bucket_id);
    struct owners o;
    if (b == NULL)
        return false;
    owners_of(a->state, b, name, &o);
    return o.acting != NULL && strcmp(o.acting->id, a->target->id) == 0;
}

static bool has_backend(void *ctx, uint64_t bucket_id)
{
    const struct acting *a = ctx;
    const struct bucket *b = bmd_bucket_by_id(&a->state->bmd, bucket_id);
    return b != NULL && b->props.backend != NULL;
}

static bool is_of_backends(const struct http_request *req)
{
    return strcmp(http_query(req, "what"), "cached") == 0;
}

static void make_summary(void *arg)
{
    struct http_request *req = arg;
    struct target *t = http_user(req);
    struct error err = ERROR_INIT;
    struct summary sum;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    struct acting acting = {.target = t, .state = s};
    const struct summary_env env = {
        .ctx = &acting, .acts = acts, .counts = is_of_backends(req) ? has_backend : NULL};
    log_set_request(http_request_id(req));
    if (summary_make(t->mountpaths, &env, &sum, &err) == 0) {
        reply_json(req, summary_json(t, &sum));
        summary_done(&sum);
    } else {
        http_reply_error(req, &err);
    }
    log_set_request(NULL);
}

static void summary_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    struct error err = ERROR_INIT;
    if (pool_submit(t->workers, make_summary, req, &err) != 0)
        http_reply_error(req, &err);
}

static void daemon_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    const char *what = http_query(req, "what");
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    if (what != NULL && (strcmp(what, "summary") == 0 || strcmp(what, "cached") == 0)) {
        summary_begin(req);
        return;
    }
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        if (what == NULL || strcmp(what, views[i].what) == 0) {
            json_t *doc = views[i].json(t, s);
            if ((http_listener(req) & NET_CLIENTS) != 0)
                daemon_params_hide(doc);
            reply_json(req, doc);
            return;
        }
    }
    struct error err;
    error_set(&err, E_INVALID,
              "parameter 'what': '%s' is none of info, config, params, smap, bmd, mountpaths, "
              "stats, summary, cached",
              what);
    http_reply_error(req, &err);
}

static void set_body(struct http_request *req, const char *data, size_t len)
{
    const struct daemon_params params = params_of(http_user(req));
    daemon_params_set(req, &params, data, len);
}

static void set_begin(struct http_request *req)
{
    const struct target *t = http_user(req);
    http_collect_body(req, t->params.body_max, set_body);
}

/* --- /v1/health, /v1/api, /metrics ------------------------------------------------------------ */

static bool query_is(const struct http_request *req, const char *name)
{
    const char *value = http_query(req, name);
    return value != NULL && strcmp(value, "true") == 0;
}

static void health_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    struct readiness now;
    target_readiness(t, query_is(req, "synced"), &now);
    if (!now.ready && !query_is(req, "live")) {
        http_reply_error(req, &now.why);
        return;
    }
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    json_t *doc = json_pack("{ss ss ss sI sI}", "status", now.ready ? "ready" : "not_ready", "id",
                            t->id, "role", node_role_name(NODE_TARGET), "term", (json_int_t)s->term,
                            "version", (json_int_t)s->version);
    if (now.why.code != 0)
        json_object_set_new(doc, "why", json_string_escaped(now.why.message));
    reply_json(req, doc);
}

static void api_begin(struct http_request *req)
{
    reply_json(req, http_routes_json(target_routes));
}

static void metrics_begin(struct http_request *req)
{
    gauges_update(http_user(req));
    daemon_metrics_reply(req);
}

const struct http_route daemon_routes[] = {
    {.name = "daemon",
     .method = HTTP_GET,
     .pattern = "/v1/daemon",
     .nets = NET_PUBLIC | NET_CONTROL,
     .right = RIGHT_SEE,
     .begin = daemon_begin,
     .summary = "This target: its id, parameters, mountpaths and counters.",
     .query = HTTP_PARAMETERS(
         {"what",
          "info (default), config, params, smap, bmd, mountpaths, stats, summary or cached"}),
     .body = "",
     .reply = "a JSON object",
     .errors = "invalid_argument"},
    DAEMON_PARAMS_ROUTE(set_begin),
    DAEMON_LOG_ROUTE,
    {.name = "health",
     .method = HTTP_GET,
     .pattern = "/v1/health",
     .nets = NET_ALL,
     .right = RIGHT_NONE,
     .open = true, /* also for who watches a node from outside */
     .begin = health_begin,
     .summary = "Is this target ready to serve?",
     .query = HTTP_PARAMETERS({"live", "true: 200 as soon as the process answers"},
                              {"synced", "true: 200 when the target also has what it missed, or "
                                         "the repair cannot end by itself (`why`)"}),
     .body = "",
     .reply = "`{\"status\": \"ready\", \"id\", \"role\", \"term\", \"version\"}`; `why`",
     .errors = "not_ready"},
    {.name = "metrics",
     .method = HTTP_GET,
     .pattern = "/metrics",
     .nets = NET_ALL,
     .right = RIGHT_SEE,
     .open = true, /* a collector has no key, and reads nothing else */
     .begin = metrics_begin,
     .summary = "Metrics in Prometheus' text format.",
     .body = "",
     .reply = "text",
     .errors = ""},
    {.name = "api",
     .method = HTTP_GET,
     .pattern = "/v1/api",
     .nets = NET_ALL,
     .right = RIGHT_ANY,
     .begin = api_begin,
     .summary = "The calls of this daemon.",
     .body = "",
     .reply = "the route table as JSON",
     .errors = ""},
    {.name = NULL},
};
