#include "proxy/http/documents_routes.h"

#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "proxy/primary/migration.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/recovery.h"

/* --- what waits for other nodes: in the overhaul thread, one at a time ------------------------ */

struct task {
    struct http_request *req;
    int (*run)(struct proxy *p, json_t *value, struct error *err);
    json_t *value;
};

static json_t *position_json(struct proxy *p)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    return json_pack("{s:s, s:I, s:I, s:s}", "cluster", s->cluster_id, "term", (json_int_t)s->term,
                     "version", (json_int_t)s->version, "primary", s->primary);
}

static void reply_position(struct http_request *req)
{
    _cleanup_json_ json_t *doc = position_json(http_user(req));
    http_reply_json(req, 200, doc);
}

static void run_task(void *arg)
{
    struct task *t = arg;
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(t->req));
    if (t->run(http_user(t->req), t->value, &err) != 0)
        proxy_reply_error(t->req, &err);
    else
        reply_position(t->req);
    log_set_request(NULL);
    json_decref(t->value);
    free(t);
}

static int start_task(struct http_request *req, json_t *value,
                      int (*run)(struct proxy *p, json_t *value, struct error *err),
                      struct error *err)
{
    const struct proxy *p = http_user(req);
    struct task *t = xcalloc(1, sizeof *t);
    *t = (struct task){.req = req, .run = run, .value = json_incref(value)};
    int r = pool_submit(p->overhaul, run_task, t, err);
    if (r != 0) {
        json_decref(t->value);
        free(t);
    }
    return r;
}

/* --- migrate ---------------------------------------------------------------------------------- */

static int run_migrate(struct proxy *p, json_t *value, struct error *err)
{
    static const char *const fields[] = {"to", "prefix", NULL};
    const char *to;
    const char *prefix = "/dfc";
    int r;
    if ((r = json_only_fields(value, "value", fields, err)) != 0 ||
        (r = json_need_str(value, "value", "to", &to, err)) != 0 ||
        (r = json_get_str(value, "value", "prefix", &prefix, err)) != 0)
        return r;
    return migration_run(p, to, prefix, err);
}

static int migrate(struct http_request *req, json_t *value, struct error *err)
{
    return start_task(req, value, run_migrate, err);
}

/* --- recover ---------------------------------------------------------------------------------- */

static int run_recover(struct proxy *p, json_t *value, struct error *err)
{
    static const char *const fields[] = {"cluster", "node", "term", "version", NULL};
    struct recovery_wish wish = {.cluster = "", .node = ""};
    uint64_t term;
    uint64_t version;
    int r;
    if ((r = json_only_fields(value, "value", fields, err)) != 0 ||
        (r = json_get_str(value, "value", "cluster", &wish.cluster, err)) != 0 ||
        (r = json_get_str(value, "value", "node", &wish.node, err)) != 0 ||
        (r = json_need_u64(value, "value", "term", &term, err)) != 0 ||
        (r = json_need_u64(value, "value", "version", &version, err)) != 0)
        return r;
    return recovery_run(p, &wish, term, version, err);
}

static int recover(struct http_request *req, json_t *value, struct error *err)
{
    return start_task(req, value, run_recover, err);
}

/* --- restore ---------------------------------------------------------------------------------- */

static void restored(void *arg, const struct error *err)
{
    if (err != NULL)
        proxy_reply_error(arg, err);
    else
        reply_position(arg);
}

/* What makes the term greater than those before in its epoch. */
static uint64_t revision_of(struct proxy *p)
{
    return p->is_shared ? p->metastore->ops->election(p->metastore) : (uint64_t)clock_wall_ms();
}

static int restore(struct http_request *req, json_t *value, struct error *err)
{
    static const char *const fields[] = {"state", "bmd", "config", NULL};
    struct proxy *p = http_user(req);
    json_t *doc = NULL;
    struct cluster_state *s = NULL;
    struct command cmd = {.kind = CMD_RESTORE, .term = revision_of(p)};
    int r;
    if ((r = json_only_fields(value, "value", fields, err)) != 0 ||
        (r = json_get_object(value, "value", "state", &doc, err)) != 0 ||
        (r = json_need_u64(value, "value", "bmd", &cmd.seen_bmd, err)) != 0 ||
        (r = json_need_u64(value, "value", "config", &cmd.seen_config, err)) != 0)
        return r;
    if (doc == NULL)
        return error_set(err, E_JSON, "field 'value.state' is missing");
    json_object_del(doc, "access"); /* users stay as they are */
    if ((r = state_from_json(doc, &s, err)) != 0)
        return r;
    cmd.restored = s;
    proxy_commit_settled(p, &cmd, restored, req);
    state_unref(s);
    return 0;
}

/* --- set_primary ------------------------------------------------------------------------------ */

static int check_heir(struct proxy *p, const char *id, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct node *n = smap_node(&s->smap, id);
    if (n == NULL)
        return error_set(err, E_NODE_NOT_FOUND, "no node is called '%.64s'", id);
    if (n->role != NODE_PROXY || n->state != NODE_ACTIVE)
        return error_set(err, E_NODE_STATE, "node '%s' is not an active proxy", id);
    if (!p->is_shared)
        return error_set(err, E_UNSUPPORTED,
                         "with an embedded metastore the primary is the proxy that has it; 'dfcctl "
                         "cluster migrate-metastore' moves the documents to where any proxy can "
                         "be primary");
    return 0;
}

/* Resigns: the others are elected before this proxy stands again.  Who of them is for them to find
 * out; the caller asks the next one, too, if it is not the one that is wanted. */
static int set_primary(struct http_request *req, json_t *value, struct error *err)
{
    static const char *const fields[] = {"node", NULL};
    struct proxy *p = http_user(req);
    const char *node;
    int r;
    if ((r = json_only_fields(value, "value", fields, err)) != 0 ||
        (r = json_need_str(value, "value", "node", &node, err)) != 0)
        return r;
    if (strcmp(node, p->id) != 0) {
        if ((r = check_heir(p, node, err)) != 0)
            return r;
        log_info("resigns, as asked", lstr("for", node));
        p->metastore->ops->resign(p->metastore);
    }
    reply_position(req);
    return 0;
}

/* --- actions ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*begin)(struct http_request *req, json_t *value, struct error *err);
} actions[] = {
    {"migrate", migrate}, {"recover", recover}, {"restore", restore}, {"set_primary", set_primary}};

static int begin_action(struct http_request *req, const char *action, json_t *value,
                        struct error *err)
{
    struct proxy *p = http_user(req);
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(actions[i].name, action) != 0)
            continue;
        if (atomic_load(&p->moved) && actions[i].begin != migrate)
            return error_set(err, E_NOT_PRIMARY, "the documents of proxy '%s' have moved", p->id);
        return actions[i].begin(req, value, err);
    }
    return error_set(err, E_INVALID,
                     "field 'action': '%.64s' is not migrate, recover, restore or set_primary",
                     action);
}

static int act(struct http_request *req, const char *data, size_t len, struct error *err)
{
    static const char *const fields[] = {"action", "value", NULL};
    _cleanup_json_ json_t *doc = NULL;
    json_t *value = NULL;
    const char *action;
    int r;
    if ((r = json_parse(data, len, &doc, err)) != 0 ||
        (r = json_only_fields(doc, "", fields, err)) != 0 ||
        (r = json_need_str(doc, "", "action", &action, err)) != 0 ||
        (r = json_get_object(doc, "", "value", &value, err)) != 0)
        return r;
    if (value == NULL)
        return error_set(err, E_JSON, "field 'value' is missing");
    return begin_action(req, action, value, err);
}

static void act_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    if (act(req, data, len, &err) != 0)
        proxy_reply_error(req, &err);
}

/* One whose documents have moved says so to whoever asks again. */
static void post_begin(struct http_request *req)
{
    struct proxy *p = http_user(req);
    bool here = atomic_load(&p->moved) ? proxy_enter(req) != NULL : !proxy_passed_to_primary(req);
    if (here)
        http_collect_body(req, p->params.state_max, act_body);
}

/* --- looking ---------------------------------------------------------------------------------- */

static void show(void *arg)
{
    struct http_request *req = arg;
    const char *cluster = http_query(req, "cluster");
    const char *node = http_query(req, "node");
    const struct recovery_wish wish = {.cluster = cluster != NULL ? cluster : "",
                                       .node = node != NULL ? node : ""};
    log_set_request(http_request_id(req));
    _cleanup_json_ json_t *doc = recovery_show(http_user(req), &wish);
    http_reply_json(req, 200, doc);
    log_set_request(NULL);
}

static void get_begin(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    struct error err = ERROR_INIT;
    if (!proxy_passed_to_primary(req) && pool_submit(p->overhaul, show, req, &err) != 0)
        http_reply_error(req, &err);
}

const struct http_route documents_routes[] = {
    {.name = "documents_get",
     .method = HTTP_GET,
     .pattern = "/v1/cluster/documents",
     .nets = NET_CONTROL,
     .admin = true,
     .right = RIGHT_CLUSTER_ADMIN,
     .begin = get_begin,
     .summary = "The copies of the documents that refused nodes have, and which would be believed.",
     .query =
         HTTP_PARAMETERS({"cluster", "id: only of this one"}, {"node", "id: believe this one's"}),
     .body = "",
     .reply = "`{\"present\": {\"cluster\", \"term\", \"version\", \"buckets\"}, \"copies\": "
              "[{\"node\", \"control_url\", \"cluster\", \"term\", \"version\", \"digest\", "
              "\"buckets\", \"nodes\", \"jobs\", \"error\"}], \"plan\": {\"node\", \"cluster\", "
              "\"term\", \"version\", \"unheard\", \"bmd\"} or {\"code\", \"refused\"}}`",
     .errors = "not_primary overloaded"},
    {.name = "documents_action",
     .method = HTTP_POST,
     .pattern = "/v1/cluster/documents",
     .nets = NET_CONTROL,
     .changes = true,
     .admin = true,
     .right = RIGHT_CLUSTER_ADMIN,
     .begin = post_begin,
     .summary = "migrate moves the documents of an embedded primary to etcd; restore puts buckets "
                "and settings back; recover takes the copy that documents_get shows; set_primary "
                "has the primary resign unless it is the named one. All but the last raise the "
                "epoch.",
     .body =
         "`{\"action\": \"migrate\", \"value\": {\"to\": \"etcd://…\", \"prefix\": \"/dfc\"}}`, "
         "`{\"action\": \"restore\", \"value\": {\"state\": the state document, \"bmd\", "
         "\"config\": their present versions}}`, `{\"action\": \"recover\", \"value\": "
         "{\"cluster\", \"node\", \"term\", \"version\"}}`, `{\"action\": \"set_primary\", "
         "\"value\": {\"node\": id}}`",
     .reply = "`{\"cluster\", \"term\", \"version\", \"primary\"}`",
     .errors = "not_primary in_doubt exists wrong_cluster precondition_failed not_found corrupt "
               "not_supported node_not_found node_state invalid_json"},
    {.name = NULL},
};
