#include "proxy/http/control_routes.h"

#include <string.h>

#include "cluster/documents/push_body.h"
#include "common/arena.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "proxy/primary/follower.h"
#include "proxy/primary/members.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/refused_nodes.h"
#include "proxy/watch/stat_samples.h"

static void reply_state(struct http_request *req)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc = state_to_json(s);
    http_reply_json(req, 200, doc);
}

static void reply_version(struct http_request *req)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc =
        json_pack("{s:I, s:I}", "term", (json_int_t)s->term, "version", (json_int_t)s->version);
    http_reply_json(req, 200, doc);
}

/* --- registration ---------------------------------------------------------------------------- */

static void registered(void *arg, const struct error *err)
{
    if (err != NULL)
        proxy_reply_error(arg, err);
    else
        reply_state(arg);
}

enum { COMPLAINT_INTERVAL_MS = 10000, KEEPALIVE_MAX = 1 << 20 };

/* Every such node comes again with every keepalive: one line for all, now and then. */
static void complain(struct proxy *p, const char *id, const struct error *err)
{
    uint64_t now = clock_ms();
    unsigned long long last = atomic_load(&p->complained_ms);
    if ((last == 0 || now - last >= COMPLAINT_INTERVAL_MS) &&
        atomic_compare_exchange_strong(&p->complained_ms, &last, now))
        log_error("a node has seen what this primary has not", lstr("node", id), lerr(err));
}

/* Hands on the code.  Who is refused for what it knows may be who knows better:
 * proxy/primary/recovery.h.
 */
static int note_refused(struct proxy *p, const struct node *n, const struct node_past *past,
                        int code, const struct error *err)
{
    if (code == E_STALE_MAP)
        complain(p, n->id, err);
    if (code == E_STALE_MAP || code == E_WRONG_CLUSTER)
        refused_nodes_note(p->refused_nodes, n->id, n->control_url, past->cluster, past->term,
                           past->version, clock_ms());
    return code;
}

/* What a node may say beside its smap entry. */
static int past_of(json_t *doc, struct node_past *past, struct error *err)
{
    int r;
    *past = (struct node_past){.cluster = ""};
    if ((r = json_get_bool(doc, "", "lost", &past->lost, err)) != 0 ||
        (r = json_get_str(doc, "", "cluster", &past->cluster, err)) != 0 ||
        (r = json_get_u64(doc, "", "term", &past->term, err)) != 0)
        return r;
    return json_get_u64(doc, "", "version", &past->version, err);
}

/* Both ask clients for proof, or neither. */
static int check_exposure(const struct proxy *p, json_t *doc, const struct node *n,
                          struct error *err)
{
    const char *theirs = "";
    int r = json_get_str(doc, "", "exposure", &theirs, err);
    return r != 0 ? r : exposure_check_node(p->exposure, n->id, theirs, err);
}

static int register_node(struct http_request *req, const char *data, size_t len, struct error *err)
{
    struct proxy *p = http_user(req);
    _cleanup_json_ json_t *doc = NULL;
    struct node n;
    struct node_past past;
    struct command cmd;
    int r;
    if ((r = json_parse(data, len, &doc, err)) != 0 ||
        (r = node_from_json(doc, "", http_arena(req), &n, err)) != 0 ||
        (r = past_of(doc, &past, err)) != 0 || (r = check_exposure(p, doc, &n, err)) != 0)
        return r;
    if ((r = members_register(p, &n, &past, &cmd, err)) != 0)
        return note_refused(p, &n, &past, r, err);
    log_info("node registers", lstr("node", n.id), lstr("boot", n.boot), lstr("url", n.public_url));
    proxy_commit(p, &cmd, registered, req);
    return 0;
}

static void register_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    if (register_node(req, data, len, &err) != 0)
        proxy_reply_error(req, &err);
}

/* --- keepalives ------------------------------------------------------------------------------ */

static int capacity_of(json_t *capacity, struct keepalive *k, struct error *err)
{
    const struct {
        const char *field;
        uint64_t *out;
    } rows[] = {{"total_bytes", &k->total_bytes},
                {"available_bytes", &k->available_bytes},
                {"room_bytes", &k->room_bytes},
                {"mountpaths_high", &k->mountpaths_high},
                {"mountpaths_out", &k->mountpaths_out},
                {"mountpaths_missing", &k->mountpaths_missing},
                {"disks_missing", &k->disks_missing},
                {"quarantined", &k->quarantined},
                {"lost", &k->lost},
                {"uploads_waiting", &k->uploads_waiting},
                {"uploads_late", &k->uploads_late},
                {"uploads_oldest_ms", &k->uploads_oldest_ms},
                {"backends_failing", &k->backends_failing},
                {"certificate_left_s", &k->certificate_left_s}};
    const char *missing = "", *bucket = "", *endpoint = "";
    int code = json_get_str(capacity, "capacity", "disk_missing", &missing, err);
    if (code == 0)
        code = json_get_str(capacity, "capacity", "failing_bucket", &bucket, err);
    if (code == 0)
        code = json_get_str(capacity, "capacity", "failing_endpoint", &endpoint, err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && code == 0; i++)
        code = json_get_u64(capacity, "capacity", rows[i].field, rows[i].out, err);
    snprintf(k->disk_missing, sizeof k->disk_missing, "%s", missing);
    snprintf(k->failing_bucket, sizeof k->failing_bucket, "%s", bucket);
    snprintf(k->failing_endpoint, sizeof k->failing_endpoint, "%s", endpoint);
    return code;
}

/* Longer ones are cut: they are only shown. */
static int build_of(json_t *doc, struct keepalive *k, struct error *err)
{
    const char *release = "", *commit = "";
    int r = json_get_str(doc, "", "release", &release, err);
    if (r == 0)
        r = json_get_str(doc, "", "commit", &commit, err);
    snprintf(k->release, sizeof k->release, "%s", release);
    snprintf(k->commit, sizeof k->commit, "%s", commit);
    return r;
}

static int keepalive_of(json_t *doc, struct keepalive *k, struct error *err)
{
    json_t *capacity = NULL;
    int r;
    if ((r = json_need_str(doc, "", "id", &k->id, err)) != 0 ||
        (r = json_need_str(doc, "", "boot", &k->boot, err)) != 0 ||
        (r = json_get_u64(doc, "", "term", &k->term, err)) != 0 ||
        (r = json_get_u64(doc, "", "version", &k->version, err)) != 0 ||
        (r = json_get_u64(doc, "", "resilver", &k->resilver, err)) != 0 ||
        (r = json_get_bool(doc, "", "electable", &k->electable, err)) != 0 ||
        (r = build_of(doc, k, err)) != 0 ||
        (r = json_get_object(doc, "", "capacity", &capacity, err)) != 0 || capacity == NULL)
        return r;
    return capacity_of(capacity, k, err);
}

/* A primary that was started anew may ask for proof where the nodes of its map do not.  A node that
 * does not say is of an earlier build. */
static int check_same_exposure(const struct proxy *p, json_t *doc, const char *id,
                               struct error *err)
{
    const char *theirs = NULL;
    int r = json_get_str(doc, "", "exposure", &theirs, err);
    return r != 0 || theirs == NULL ? r : exposure_check_node(p->exposure, id, theirs, err);
}

struct keepalive_reply {
    uint64_t lease_ms;
    json_t *quotas; /* or NULL */
};

/* Of a node that counts as heard. */
static int take_heard(struct proxy *p, const struct cluster_state *s, const struct node *n,
                      const char *boot, json_t *doc, struct keepalive_reply *out, struct error *err)
{
    struct node_stats stats;
    if (n == NULL || n->role != NODE_TARGET)
        return 0;
    json_t *told = json_object_get(doc, "stats");
    int r = node_stats_from_json(told, &stats, err);
    if (r != 0)
        return r;
    if (told != NULL) /* an earlier release does not tell */
        stat_samples_hear(p->samples, n->id, boot, &stats, clock_ms());
    return members_take_quotas(p, s, n->id, json_object_get(doc, "quotas"), &out->quotas, err);
}

static int take_keepalive(struct proxy *p, const char *data, size_t len,
                          struct keepalive_reply *out, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc = NULL;
    /* A proxy of an earlier release does not say whether it may be elected. */
    struct keepalive k = {.room_bytes = ROOM_UNKNOWN, .electable = p->is_shared};
    int r;
    if ((r = json_parse(data, len, &doc, err)) != 0 || (r = keepalive_of(doc, &k, err)) != 0)
        return r;
    const struct node *known = smap_node(&s->smap, k.id);
    if (known != NULL && (r = check_same_exposure(p, doc, k.id, err)) != 0)
        return r;
    r = members_keepalive(p, &k, &out->lease_ms, err);
    if (r == 0)
        r = take_heard(p, s, known, k.boot, doc, out, err);
    const struct node_past past = {.cluster = s->cluster_id, .term = k.term, .version = k.version};
    return known != NULL ? note_refused(p, known, &past, r, err) : r;
}

static void keepalive_body(struct http_request *req, const char *data, size_t len)
{
    struct proxy *p = http_user(req);
    struct error err = ERROR_INIT;
    struct keepalive_reply reply = {0};
    if (take_keepalive(p, data, len, &reply, &err) != 0) {
        proxy_reply_error(req, &err);
        return;
    }
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc = json_pack("{s:I, s:I, s:I, s:o*}", "term", (json_int_t)s->term,
                                           "version", (json_int_t)s->version, "lease_ms",
                                           (json_int_t)reply.lease_ms, "quotas", reply.quotas);
    http_reply_json(req, 200, doc);
}

/* --- a node stops ---------------------------------------------------------------------------- */

static void stop_known(void *arg, const struct error *err)
{
    if (err != NULL)
        proxy_reply_error(arg, err);
    else
        reply_version(arg);
}

static int take_stop(struct http_request *req, const char *data, size_t len, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *id, *boot;
    int r;
    if ((r = json_parse(data, len, &doc, err)) != 0 ||
        (r = json_need_str(doc, "", "id", &id, err)) != 0 ||
        (r = json_need_str(doc, "", "boot", &boot, err)) != 0)
        return r;
    return members_stop_node(http_user(req), id, boot, stop_known, req, err);
}

static void stop_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    if (take_stop(req, data, len, &err) != 0)
        proxy_reply_error(req, &err);
}

/* --- states ---------------------------------------------------------------------------------- */

/* A state that was pushed: read in a thread of p->push_pool, taken in the control loop. */
struct push {
    struct http_request *req;
    const char *data;
    size_t len;
    struct cluster_state *state; /* NULL: the push was a difference from another state */
};

static void reply_to_push(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct push_reply reply = {.term = s->term, .version = s->version, .deltas = true};
    _cleanup_json_ json_t *doc = push_reply_to_json(&reply);
    http_reply_json(req, 200, doc);
}

/* A primary without others has no follower; nor has it one when its documents have moved away. */
static int take(struct proxy *p, const struct cluster_state *s, struct error *err)
{
    if (p->follower != NULL)
        return follower_take(p->follower, s, err);
    return error_set(err, E_NOT_READY,
                     "proxy '%s' is not the primary any more and takes no state: start it again",
                     p->id);
}

/* The memory of `push` ends with the request, which the reply may end at once. */
static void push_take(void *arg)
{
    struct push *push = arg;
    struct http_request *req = push->req;
    struct error err = ERROR_INIT;
    int r = push->state != NULL ? take(http_user(req), push->state, &err) : 0;
    state_unref(push->state);
    if (r != 0)
        proxy_reply_error(req, &err);
    else
        reply_to_push(req);
}

static void push_read(void *arg)
{
    struct push *push = arg;
    const struct proxy *p = http_user(push->req);
    _cleanup_state_ const struct cluster_state *now = state_current(p->state);
    struct error err = ERROR_INIT;
    if (push_body_read(now, push->data, push->len, &push->state, &err) != 0)
        proxy_reply_error(push->req, &err);
    else
        loop_post(p->loop, push_take, push);
}

static int push_of(struct http_request *req, const char *data, size_t len, struct error *err)
{
    struct proxy *p = http_user(req);
    if (atomic_load(&p->is_primary))
        return error_set(err, E_EXISTS, "proxy '%s' is the primary and takes no state", p->id);
    struct push *push = arena_alloc(http_arena(req), sizeof *push);
    *push = (struct push){.req = req, .data = data, .len = len};
    return pool_submit(p->push_pool, push_read, push, err);
}

static void push_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    if (push_of(req, data, len, &err) != 0)
        proxy_reply_error(req, &err);
}

/* --- routes ---------------------------------------------------------------------------------- */

static void register_begin(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, p->params.body_max, register_body);
}

/* No setting of an operator makes it too large. */
static void keepalive_begin(struct http_request *req)
{
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, KEEPALIVE_MAX, keepalive_body);
}

static void stop_begin(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, p->params.body_max, stop_body);
}

static void state_get_begin(struct http_request *req)
{
    if (proxy_enter(req) != NULL)
        reply_state(req);
}

/* Also while the proxy waits for its first state: this may be it. */
static void state_put_begin(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    struct error err;
    if (atomic_load(&p->started)) {
        http_collect_body(req, p->params.state_max, push_body);
        return;
    }
    error_set(&err, E_NOT_READY, "proxy '%s' is starting or stopping", p->id);
    http_reply_error(req, &err);
}

const struct http_route control_routes[] = {
    {.name = "node_register",
     .method = HTTP_POST,
     .pattern = "/v1/cluster/register",
     .nets = NET_CONTROL,
     .any_cluster = true,
     .right = RIGHT_NODE,
     .begin = register_begin,
     .summary = "A node joins, or has restarted.",
     .body = "the smap's entry of the node; `cluster`, `term`, `version` of an earlier state, if "
             "the node has one; `lost`: a known target joins without its objects",
     .reply = "200 and the state document",
     .errors = "exists wrong_cluster stale_map not_supported mountpath_unusable invalid_json"},
    {.name = "node_keepalive",
     .method = HTTP_POST,
     .pattern = "/v1/cluster/keepalive",
     .nets = NET_CONTROL,
     .any_cluster = true,
     .right = RIGHT_NODE,
     .begin = keepalive_begin,
     .summary = "A node reports that it is alive.",
     .body =
         "`{\"id\", \"boot\", \"term\", \"version\", \"capacity\": {\"total_bytes\", "
         "\"available_bytes\"}, \"quotas\": [{\"bucket\", \"objects\", \"bytes\"}], "
         "\"electable\"}`: what a target has of the buckets with a quota; whether a proxy may be "
         "elected primary",
     .reply =
         "`{\"term\", \"version\", \"lease_ms\"}`; a newer one than the node's: fetch the state. "
         "lease_ms: for so long from when it sent this the node is not given up (0: not known). "
         "`quotas`: what the other targets have of those buckets, and in `yours` what was received "
         "last from this one",
     .errors = "node_not_found (register again) stale_map"},
    {.name = "node_stop",
     .method = HTTP_POST,
     .pattern = "/v1/cluster/stop",
     .nets = NET_CONTROL,
     .any_cluster = true,
     .right = RIGHT_NODE,
     .begin = stop_begin,
     .summary = "A node reports that it stops; the map passes it over from then on.",
     .body = "`{\"id\", \"boot\"}`: of a node that answers no read by its lease any more",
     .reply = "`{\"term\", \"version\"}`, when every active proxy has that state, or "
              "settle_timeout is over",
     .errors = "node_not_found (another run has the id) node_state (it is the primary)"},
    {.name = "state_get",
     .method = HTTP_GET,
     .pattern = "/v1/cluster/state",
     .nets = NET_CONTROL,
     .any_cluster = true,
     .right = RIGHT_NODE,
     .begin = state_get_begin,
     .summary = "The state document.",
     .body = "",
     .reply = "the document (cluster/documents/state.h)",
     .errors = "not_ready"},
    {.name = "state_put",
     .method = HTTP_PUT,
     .pattern = "/v1/cluster/state",
     .nets = NET_CONTROL,
     .any_cluster = true,
     .right = RIGHT_NODE,
     .begin = state_put_begin,
     .summary = "The primary pushes a newer state.",
     .body = "the state document, or the difference from an earlier one "
             "(cluster/documents/push_body.h)",
     .reply =
         "`{\"term\", \"version\", \"deltas\"}`: what the node holds now, and whether it reads "
         "differences",
     .errors = "wrong_cluster exists"},
    {.name = NULL},
};
