#include "proxy/http/watch_routes.h"

#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "proxy/primary/proxy.h"
#include "proxy/watch/events.h"
#include "proxy/watch/stat_samples.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 1000, SAMPLES_MAX = 100000 };

/* --- events ---------------------------------------------------------------------------------- */

struct question {
    struct http_request *req;
    struct event_cursor after;
    uint64_t limit, wait_ms;
};

static void reply(void *arg)
{
    struct question *q = arg;
    struct proxy *p = http_user(q->req);
    _cleanup_json_ json_t *doc = event_log_page(events_log(p->events), q->after, (size_t)q->limit);
    json_object_set_new(doc, "proxy", json_string(p->id));
    http_reply_json(q->req, 200, doc);
    free(q);
}

/* Where it is not given *out stays. */
static int read_count(struct http_request *req, const char *name, uint64_t most, uint64_t *out,
                      struct error *err)
{
    const char *text = http_query(req, name);
    if (text == NULL)
        return 0;
    int r = parse_u64(text, out, err);
    if (r == 0 && (*out < 1 || *out > most))
        r = error_set(err, E_INVALID, "'%.32s' is not 1 to %llu", text, (unsigned long long)most);
    return r != 0 ? error_recode(err, E_INVALID, "parameter '%s'", name) : 0;
}

/* A proxy that passes the call on gives up after its call_timeout: a longer wait is cut. */
static int read_wait(struct question *q, struct error *err)
{
    const struct proxy *p = http_user(q->req);
    const char *text = http_query(q->req, "wait");
    if (text == NULL)
        return 0;
    int r = parse_duration_ms(text, &q->wait_ms, err);
    if (r != 0)
        return error_recode(err, E_INVALID, "parameter 'wait'");
    if (q->wait_ms > p->params.call_timeout / 2)
        q->wait_ms = p->params.call_timeout / 2;
    return 0;
}

static int read_question(struct question *q, struct error *err)
{
    const struct proxy *p = http_user(q->req);
    int r = event_log_cursor(events_log(p->events), http_query(q->req, "after"), &q->after, err);
    q->limit = LIMIT_DEFAULT;
    if (r == 0)
        r = read_count(q->req, "limit", LIMIT_MAX, &q->limit, err);
    return r == 0 ? read_wait(q, err) : r;
}

/* A cursor of another run is answered at once: all events are later. */
static void events_get_begin(struct http_request *req)
{
    struct error err = ERROR_INIT;
    const struct proxy *p = http_user(req);
    if (proxy_passed_to_primary(req))
        return;
    struct question *q = xcalloc(1, sizeof *q);
    q->req = req;
    if (read_question(q, &err) != 0) {
        http_reply_error(req, &err);
        free(q);
        return;
    }
    if (q->wait_ms == 0 || q->after.anew ||
        !events_wait(p->events, q->after.number, q->wait_ms, reply, q))
        reply(q);
}

/* --- rates ----------------------------------------------------------------------------------- */

static void stats_begin(struct http_request *req)
{
    struct error err = ERROR_INIT;
    const struct proxy *p = http_user(req);
    const char *nodes = http_query(req, "nodes");
    uint64_t samples = SAMPLES_MAX;
    if (proxy_passed_to_primary(req))
        return;
    if (read_count(req, "samples", SAMPLES_MAX, &samples, &err) != 0) {
        http_reply_error(req, &err);
        return;
    }
    const struct stat_samples_question q = {.samples = (size_t)samples,
                                            .nodes = nodes != NULL && strcmp(nodes, "true") == 0,
                                            .wall_ms = clock_wall_ms()};
    _cleanup_json_ json_t *doc = stat_samples_show(p->samples, &q, clock_ms());
    json_object_set_new(doc, "proxy", json_string(p->id));
    http_reply_json(req, 200, doc);
}

/* --- the mountpaths of a target -------------------------------------------------------------- */

static void target_answered(void *arg, struct http_result *r)
{
    struct http_request *req = arg;
    struct error err = ERROR_INIT;
    if (http_result_error(r, "", &err) == 0)
        http_reply_data(req, 200, "application/json", r->body.data, r->body.len);
    else
        proxy_reply_error(req, &err);
}

static int find_target(const struct cluster_state *s, const char *id, const struct node **out,
                       struct error *err)
{
    *out = smap_node(&s->smap, id);
    if (*out == NULL)
        return error_set(err, E_NODE_NOT_FOUND, "the cluster has no node '%.64s'", id);
    if ((*out)->role != NODE_TARGET)
        return error_set(err, E_INVALID, "node '%s' is a proxy: it has no mountpaths", id);
    return 0;
}

static void mountpaths_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter(req);
    struct error err = ERROR_INIT;
    const struct node *target;
    if (p == NULL)
        return;
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    if (find_target(s, http_path_param(req, "node"), &target, &err) != 0) {
        http_reply_error(req, &err);
        return;
    }
    _cleanup_free_ char *url = xprintf("%s/v1/daemon?what=mountpaths", target->control_url);
    const struct http_call call = {
        .method = HTTP_GET,
        .url = url,
        .node = target->id,
        .reply_max = p->params.body_max,
        .total_timeout_ms = p->params.call_timeout,
        .request_id = http_request_id(req),
    };
    http_call_start(p->client, &call, target_answered, req);
}

const struct http_route watch_routes[] = {
    {.name = "events_get",
     .method = HTTP_GET,
     .pattern = "/v1/events",
     .nets = NET_PUBLIC | NET_CONTROL,
     .right = RIGHT_SEE,
     .begin = events_get_begin,
     .summary = "What happened of late in the cluster, the oldest first: nodes, disks, buckets, "
                "settings, jobs.",
     .query = HTTP_PARAMETERS(
         {"after",
          "events later than this cursor, `next` of an earlier reply; without one the latest"},
         {"wait", "so long at most for such an event, as 5s; never longer than half of the "
                  "primary's call_timeout, and not while events_waits_max calls wait"},
         {"limit", "so many events at most, 1 to 1000 (default 100)"}),
     .body = "",
     .reply = "`{\"events\": [{\"number\", \"at_ms\", \"level\": info, warning or error, "
              "\"kind\", \"node\", \"bucket\", \"job\" (what it is about), \"text\"}], \"next\": "
              "cursor, \"anew\" (true: the cursor is of another primary, or of an earlier run of "
              "this one: these are the latest), \"missed\" (events that made room), "
              "\"proxy\"}`",
     .errors = "invalid_argument"},
    {.name = "cluster_stats",
     .method = HTTP_GET,
     .pattern = "/v1/cluster/stats",
     .nets = NET_PUBLIC | NET_CONTROL,
     .right = RIGHT_SEE,
     .begin = stats_begin,
     .summary =
         "How fast the cluster is: the last samples of all targets together. The primary has "
         "them in memory: another one begins anew.",
     .query = HTTP_PARAMETERS({"samples", "the last ones alone (default: all within stats_keep)"},
                              {"nodes", "true: also those of each target"}),
     .body = "",
     .reply = "`{\"interval_ms\" (stats_interval), \"end_ms\" (of the last sample), \"samples\", "
              "\"cluster\": {\"reads\", \"read_bytes\", \"writes\", \"write_bytes\", \"deletes\", "
              "\"errors\" (replies with 5xx), \"cpu_us\": counts within each interval; "
              "\"memory_bytes\", \"connections\", \"queue\" (disk operations in progress); "
              "\"read_p99_us\", \"write_p99_us\" (of the slowest target)}, each a list, the oldest "
              "first, null where no target has told; \"nodes\": {\"t1\": the same}, \"proxy\"}`",
     .errors = "invalid_argument"},
    {.name = "node_mountpaths",
     .method = HTTP_GET,
     .pattern = "/v1/nodes/{node}/mountpaths",
     .nets = NET_PUBLIC | NET_CONTROL,
     .right = RIGHT_SEE,
     .begin = mountpaths_begin,
     .summary = "The mountpaths of a target, as it shows them itself: for clients that reach "
                "proxies alone.",
     .body = "",
     .reply = "that of the target's `GET /v1/daemon?what=mountpaths`",
     .errors = "node_not_found invalid_argument node_unreachable"},
    {.name = NULL},
};
