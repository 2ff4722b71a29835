#include "proxy/http/buckets.h"

#include <string.h>

#include "access/guard.h"
#include "cluster/props/backend.h"
#include "cluster/props/backend_endpoints.h"
#include "cluster/placement/protection.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "proxy/primary/job_start.h"
#include "proxy/http/backend_probe.h"
#include "proxy/list/list.h"
#include "proxy/http/objects_start.h"
#include "proxy/jobs/job_kind.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/recovery.h"

/* --- documents ------------------------------------------------------------------------------- */

/* As users see it; the state document's form is between nodes. */
static json_t *bucket_view(const struct cluster_state *s, const struct bucket *b)
{
    _cleanup_(buf_done)
    struct buf why = BUF_INIT;
    protection_why(s, b, &why);
    const char *backend = b->props.backend;
    return json_pack("{s:s, s:I, s:I, s:o, s:s, s:s*, s:o*}", "name", b->name, "id",
                     (json_int_t)b->id, "created_ms", (json_int_t)b->created_ms, "props",
                     bucket_props_to_json(&b->props), "protection",
                     protection_name(protection_of(s, b)), "why",
                     why.len > 0 ? buf_str(&why) : NULL, "listed",
                     backend != NULL ? json_boolean(backend_is_listed(backend)) : NULL);
}

static void reply_all(struct http_request *req, const struct cluster_state *s)
{
    json_t *buckets = json_array();
    for (size_t i = 0; i < s->bmd.count; i++) {
        if (guard_sees(req, s->bmd.buckets[i].name))
            json_array_append_new(buckets, bucket_view(s, &s->bmd.buckets[i]));
    }
    const bool hidden = json_array_size(buckets) < s->bmd.count;
    _cleanup_json_ json_t *doc =
        json_pack("{s:o, s:o*}", "buckets", buckets, "hidden", hidden ? json_true() : NULL);
    http_reply_json(req, 200, doc);
}

static void reply_bucket(struct http_request *req, const struct cluster_state *s, const char *name,
                         int status)
{
    const struct bucket *b = bmd_bucket(&s->bmd, name);
    struct error err = ERROR_INIT;
    if (bucket_name_check(name, &err) != 0) {
        http_reply_error(req, &err);
    } else if (b == NULL) {
        proxy_no_bucket(http_user(req), name, &err);
        http_reply_error(req, &err);
    } else {
        _cleanup_json_ json_t *doc = bucket_view(s, b);
        http_reply_json(req, status, doc);
    }
}

static void list_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter(req);
    if (p == NULL)
        return;
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    reply_all(req, s);
}

static void get_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter(req);
    if (p == NULL)
        return;
    const char *name = http_path_param(req, "bucket");
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    if (strcmp(name, "*") == 0) /* what DFC's clients ask for */
        reply_all(req, s);
    else
        reply_bucket(req, s, name, 200);
}

/* --- changes --------------------------------------------------------------------------------- */

static void reply_done_with_document(struct http_request *req, const struct error *err, int status)
{
    if (err != NULL) {
        proxy_reply_error(req, err);
        return;
    }
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    reply_bucket(req, s, http_path_param(req, "bucket"), status);
}

static void log_bucket(const char *event, const struct http_request *req, const struct error *err)
{
    if (err == NULL)
        log_info(event, lstr("bucket", http_path_param(req, "bucket")),
                 lstr("user", http_actor(req)->name), lstr("request", http_request_id(req)));
}

static void create_done(void *arg, const struct error *err)
{
    log_bucket("bucket made", arg, err);
    reply_done_with_document(arg, err, 201);
}

static void setprops_done(void *arg, const struct error *err)
{
    log_bucket("bucket properties set", arg, err);
    reply_done_with_document(arg, err, 200);
}

static void reply_done(struct http_request *req, const struct error *err)
{
    if (err != NULL)
        proxy_reply_error(req, err);
    else
        http_reply_empty(req, 204);
}

static void destroy_done(void *arg, const struct error *err)
{
    log_bucket("bucket destroyed", arg, err);
    reply_done(arg, err);
}

static void rename_done(void *arg, const struct error *err)
{
    log_bucket("bucket renamed", arg, err);
    reply_done(arg, err);
}

/* The body of a request that does something. */
struct action_body {
    const char *name; /* or NULL */
    json_t *value;    /* or NULL */
    bool check;       /* of a create: the backend is asked first */
};

/* Unlike in a state document, what is not known here is a mistake. */
static int props_of_value(json_t *value, struct bucket_props *p, struct error *err)
{
    int r = json_only_fields(value, "value", bucket_props_names, err);
    return r != 0 ? r : bucket_props_from_json(value, p, err);
}

/* Targets look again, each time that they send some (target/backend/exchange.c). */
static int check_backend(const struct proxy *p, const struct bucket_props *props, struct error *err)
{
    if (props->backend == NULL ||
        backend_endpoints_check_url(p->endpoints, props->backend, err) == 0)
        return 0;
    err->code = E_INVALID;
    return err->code;
}

/* The owner of a bucket reads all that its backend gives: whoever may only create buckets must not
 * have the cluster's credentials sent. */
static int check_credentials(struct http_request *req, const struct bucket_props *props,
                             struct error *err)
{
    if (props->backend == NULL || !backend_is_signed(props->backend))
        return 0;
    int r = guard_ask(req, RIGHT_CLUSTER_ADMIN, NULL, NULL, err);
    return r == 0 ? 0
                  : error_wrap(err, "a backend that is reached with the cluster's credentials "
                                    "(auth=none has none)");
}

/* A quota binds the owner of the bucket, too. */
static int check_quota_right(struct http_request *req, const json_t *value, struct error *err)
{
    if (json_object_get(value, "quota_bytes") == NULL &&
        json_object_get(value, "quota_objects") == NULL)
        return 0;
    int r = guard_ask(req, RIGHT_OPERATE, NULL, NULL, err);
    return r == 0 ? 0 : error_wrap(err, "a change of a quota");
}

static void commit_create(struct http_request *req, const struct bucket_props *props)
{
    const struct command cmd = {
        .kind = CMD_BUCKET_CREATE,
        .name = http_path_param(req, "bucket"),
        .props = props,
        .actor = http_actor(req)->id,
        .wall_ms = clock_wall_ms(),
    };
    proxy_commit_settled(http_user(req), &cmd, create_done, req);
}

/* A bucket that is made once its backend has answered. */
struct creation {
    struct http_request *req;
    struct bucket_props props;
};

static void backend_answered(void *arg, const struct error *failure)
{
    const struct creation *c = arg;
    if (failure == NULL) {
        commit_create(c->req, &c->props);
        return;
    }
    struct error err = *failure;
    error_recode(&err, err.code, "bucket '%s' is not made", http_path_param(c->req, "bucket"));
    http_reply_error(c->req, &err);
}

static void create_checked(struct http_request *req, const struct bucket_props *props)
{
    struct creation *c = arena_alloc(http_arena(req), sizeof *c);
    *c = (struct creation){.req = req, .props = *props};
    c->props.backend = arena_strdup(http_arena(req), props->backend);
    backend_probe(http_user(req), c->props.backend, http_request_id(req), backend_answered, c);
}

static int create(struct http_request *req, const struct action_body *body, struct error *err)
{
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    int r = guard_ask(req, RIGHT_CREATE, NULL, NULL, err);
    if (r == 0)
        r = body->value != NULL ? props_of_value(body->value, &props, err) : 0;
    if (r != 0 || (r = check_credentials(req, &props, err)) != 0 ||
        (r = check_backend(http_user(req), &props, err)) != 0 ||
        (r = recovery_check_new(http_user(req), err)) != 0)
        return r;
    if (props.backend != NULL && json_object_get(body->value, "durability") == NULL)
        props.durability = DURABILITY_ASYNC; /* what is lost can be read again */
    if (body->check && props.backend != NULL)
        create_checked(req, &props);
    else
        commit_create(req, &props);
    return 0;
}

/* A change of a ring may leave out what stays: then the whole is judged. */
static void take_ring(const struct proxy *p, const char *name, struct bucket_props *to)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct bucket *b = bmd_bucket(&s->bmd, name);
    if (b == NULL)
        return;
    to->ring_cap = b->props.ring_cap;
    to->ring_keep = b->props.ring_keep;
    to->ring_bytes_max = b->props.ring_bytes_max;
    to->ring_consumed = b->props.ring_consumed;
    to->ring_drops = b->props.ring_drops;
}

static int setprops(struct http_request *req, const struct action_body *body, struct error *err)
{
    const char *name = http_path_param(req, "bucket");
    struct bucket_props scratch = BUCKET_PROPS_DEFAULT;
    int r;
    if (body->value == NULL)
        return error_set(err, E_JSON, "field 'value' is missing");
    take_ring(http_user(req), name, &scratch);
    if ((r = bucket_name_check(name, err)) != 0 ||
        (r = props_of_value(body->value, &scratch, err)) != 0 ||
        (r = check_credentials(req, &scratch, err)) != 0 ||
        (r = check_quota_right(req, body->value, err)) != 0 ||
        (r = check_backend(http_user(req), &scratch, err)) != 0)
        return r;
    const struct command cmd = {.kind = CMD_BUCKET_PROPS, .name = name, .patch = body->value};
    proxy_commit_settled(http_user(req), &cmd, setprops_done, req);
    return 0;
}

static int destroy(struct http_request *req, const struct action_body *body, struct error *err)
{
    (void)body;
    const char *name = http_path_param(req, "bucket");
    int r = bucket_name_check(name, err);
    if (r != 0)
        return r;
    const struct command cmd = {.kind = CMD_BUCKET_DESTROY, .name = name};
    proxy_commit_settled(http_user(req), &cmd, destroy_done, req);
    return 0;
}

static int rename_bucket(struct http_request *req, const struct action_body *body,
                         struct error *err)
{
    const char *name = http_path_param(req, "bucket");
    int r;
    if (body->name == NULL)
        return error_set(err, E_JSON, "field 'name', the new name, is missing");
    if ((r = guard_ask(req, RIGHT_ADMIN, name, NULL, err)) != 0 ||
        (r = guard_ask(req, RIGHT_CREATE, NULL, NULL, err)) != 0)
        return r;
    if ((r = bucket_name_check(name, err)) != 0 || (r = bucket_name_check(body->name, err)) != 0)
        return r;
    const struct command cmd = {.kind = CMD_BUCKET_RENAME, .name = name, .text = body->name};
    proxy_commit_settled(http_user(req), &cmd, rename_done, req);
    return 0;
}

static int list_objects(struct http_request *req, const struct action_body *body, struct error *err)
{
    static const char *const fields[] = {"prefix",  "delimiter", "start_after", "token", "limit",
                                         "partial", "cached",    "internal",    NULL};
    struct list_request l = LIST_REQUEST_DEFAULT(http_path_param(req, "bucket"));
    json_t *value = body->value;
    int r;
    if (value != NULL &&
        ((r = json_only_fields(value, "value", fields, err)) != 0 ||
         (r = json_get_str(value, "value", "prefix", &l.prefix, err)) != 0 ||
         (r = json_get_str(value, "value", "delimiter", &l.delimiter, err)) != 0 ||
         (r = json_get_str(value, "value", "start_after", &l.start_after, err)) != 0 ||
         (r = json_get_str(value, "value", "token", &l.token, err)) != 0 ||
         (r = json_get_u64(value, "value", "limit", &l.limit, err)) != 0 ||
         (r = json_get_bool(value, "value", "partial", &l.partial, err)) != 0 ||
         (r = json_get_bool(value, "value", "cached", &l.cached, err)) != 0 ||
         (r = json_get_bool(value, "value", "internal", &l.internal, err)) != 0))
        return r;
    if ((r = guard_ask(req, RIGHT_LIST, http_path_param(req, "bucket"), l.prefix, err)) != 0)
        return r;
    list_start(req, &l);
    return 0;
}

/* --- jobs over the objects of a bucket -------------------------------------------------------- */

static int start_job(struct http_request *req, const char *kind, json_t *value, struct error *err)
{
    _cleanup_json_ json_t *empty = json_object();
    return objects_start(req, kind, value != NULL ? value : empty, job_start_reply, err);
}

/* --- actions --------------------------------------------------------------------------------- */

/* {"action": name, "value": {…}}; the second names are DFC's.  A kind of job over objects is an
 * action of POST, too. */
struct action {
    const char *name;
    const char *alias;
    /* 0: it has replied or will; a code: the caller replies. */
    int (*run)(struct http_request *req, const struct action_body *body, struct error *err);
};

static const struct action post_actions[] = {
    {"create", "createlb", create},
    {"listobjects", "listobjects", list_objects},
    {"rename", "renamelb", rename_bucket},
    {NULL},
};
static const struct action put_actions[] = {
    {"setprops", "setprops", setprops},
    {NULL},
};
static const struct action delete_actions[] = {
    {"destroy", "destroylb", destroy},
    {NULL},
};

static int unknown_action(const struct action *table, const char *name, struct error *err)
{
    const struct job_kind *k;
    _cleanup_(buf_done)
    struct buf known = BUF_INIT;
    for (const struct action *a = table; a->name != NULL; a++)
        buf_printf(&known, "%s%s", a != table ? " or " : "", a->name);
    for (size_t i = 0; table == post_actions && (k = job_kind_at(i)) != NULL; i++) {
        if (k->objects != NULL)
            buf_printf(&known, " or %s", k->name);
    }
    return error_set(err, E_INVALID, "field 'action': '%.64s' is not %s", name, buf_str(&known));
}

static int run_action(struct http_request *req, const struct action *table, const char *data,
                      size_t len, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *name = NULL;
    struct action_body body = {0};
    int r;
    if ((r = json_parse(data, len, &doc, err)) != 0)
        return r;
    if (!json_is_object(doc))
        return error_set(err, E_JSON, "the body must be an object with the field 'action'");
    if ((r = json_need_str(doc, "", "action", &name, err)) != 0 ||
        (r = json_get_str(doc, "", "name", &body.name, err)) != 0 ||
        (r = json_get_bool(doc, "", "check", &body.check, err)) != 0 ||
        (r = json_get_object(doc, "", "value", &body.value, err)) != 0)
        return r;
    for (const struct action *a = table; a->name != NULL; a++) {
        if (strcmp(a->name, name) == 0 || strcmp(a->alias, name) == 0)
            return a->run(req, &body, err);
    }
    if (table == post_actions && objects_start_has(name))
        return start_job(req, name, body.value, err);
    return unknown_action(table, name, err);
}

static void body_with_action(struct http_request *req, const struct action *table, const char *data,
                             size_t len)
{
    struct error err = ERROR_INIT;
    if (run_action(req, table, data, len, &err) != 0)
        http_reply_error(req, &err);
}

void bucket_post(struct http_request *req, const char *data, size_t len)
{
    body_with_action(req, post_actions, data, len);
}

static void put_body(struct http_request *req, const char *data, size_t len)
{
    body_with_action(req, put_actions, data, len);
}

void bucket_delete_by(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    if (len > 0)
        body_with_action(req, delete_actions, data, len);
    else if (destroy(req, &(struct action_body){0}, &err) != 0)
        http_reply_error(req, &err);
}

static void change_begin(struct http_request *req,
                         void (*body)(struct http_request *req, const char *data, size_t len))
{
    const struct proxy *p = http_user(req);
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, p->params.body_max, body);
}

/* It may list objects by name. */
static void post_begin(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    size_t max = p->params.body_max > JOB_SPEC_MAX ? p->params.body_max : JOB_SPEC_MAX;
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, max, bucket_post);
}

static void put_begin(struct http_request *req)
{
    change_begin(req, put_body);
}

static void delete_begin(struct http_request *req)
{
    change_begin(req, bucket_delete_by);
}

const struct http_route bucket_routes[] = {
    {.name = "bucket_list",
     .method = HTTP_GET,
     .pattern = "/v1/buckets",
     .nets = NET_PUBLIC,
     .right = RIGHT_ANY,
     .begin = list_begin,
     .summary = "All buckets.",
     .body = "",
     .reply =
         "`{\"buckets\": [{\"name\", \"id\", \"created_ms\", \"props\", \"protection\": one_copy, "
         "protected, degraded or unavailable, \"why\"}], \"hidden\": true, if there are others "
         "that the user may not list}`",
     .errors = ""},
    {.name = "bucket_get",
     .method = HTTP_GET,
     .pattern = "/v1/buckets/{bucket}",
     .nets = NET_PUBLIC,
     .right = RIGHT_LIST,
     .begin = get_begin,
     .summary = "One bucket's document; `*` is all buckets.",
     .body = "",
     .reply = "`{\"name\", \"id\", \"created_ms\", \"props\", \"protection\", \"why\": what "
              "is amiss, where something is}`",
     .errors = "bucket_not_found invalid_name"},
    {.name = "bucket_head",
     .method = HTTP_HEAD,
     .pattern = "/v1/buckets/{bucket}",
     .nets = NET_PUBLIC,
     .right = RIGHT_LIST,
     .begin = get_begin,
     .summary = "Does the bucket exist?",
     .body = "",
     .reply = "200 or 404",
     .errors = "bucket_not_found invalid_name"},
    {.name = "bucket_create",
     .method = HTTP_POST,
     .pattern = "/v1/buckets/{bucket}",
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_ANY,
     .begin = post_begin,
     .summary = "Creates a bucket; or, with another action, renames it, lists its objects, or "
                "starts a job that deletes, copies, archives, extracts, promotes, prefetches, "
                "evicts or downloads "
                "them, which needs the right `jobs`, too. A backend "
                "that is reached with the cluster's credentials needs the right `admin` on the "
                "cluster.",
     .body =
         "`{\"action\": \"create\", \"value\": {props}, \"check\": false}` (also `createlb`; "
         "check: a target first asks the bucket's backend for one name); `{\"action\": "
         "\"listobjects\", \"value\": {\"prefix\", \"delimiter\", \"start_after\", "
         "\"token\", \"limit\", \"partial\", \"cached\", \"internal\"}}`; `{\"action\": "
         "\"delete\", \"value\": {\"list\": "
         "[name, …] or \"template\": text or \"prefix\": text, \"internal\": false, "
         "\"description\"}}`; `{\"action\": "
         "\"copy\", \"value\": {the same, \"to\": bucket, \"prepend\": text}}`; "
         "`{\"action\": \"archive\", \"value\": {the same as delete, \"archive\": name, \"to\": "
         "bucket or {\"bucket\", \"template\"}, \"shard_size\": size, \"format\": \".tar\"|…, "
         "\"strip\": text, \"prepend\": text, \"names\": \"full\"|\"base\", \"order\": "
         "\"name\"|\"shuffle\", \"seed\": number, \"allow_empty\": false}}`; "
         "`{\"action\": \"burn\", \"value\": {\"prefix\" or \"csv\": text, \"image\": name, "
         "\"to\": bucket, \"from\": image, \"remove\": [path, …], \"store\": "
         "\"refer\"|\"unique\"|\"pack\", \"base\": image, \"digest\", \"check\", \"names\", "
         "\"joliet\", \"date\", \"identifiers\", \"allow_empty\", \"description\"}}`; "
         "`{\"action\": \"flatten\", \"value\": {the same as delete, \"allow_empty\": false}}`; "
         "`{\"action\": \"unarchive\", \"value\": {the same as delete, \"to\": bucket, "
         "\"prepend\": text, \"names\": \"archive\"|\"member\"}}`; `{\"action\": "
         "\"promote\", \"value\": {\"path\": text, \"node\": id, \"prepend\": text, \"overwrite\": "
         "false, \"move\": false, \"description\"}}`; `{\"action\": "
         "\"prefetch\", \"value\": {the same as delete, \"parallel\", \"rate\"}}`; "
         "`{\"action\": \"evict\", \"value\": {the same as delete}}`; `{\"action\": "
         "\"download\", \"value\": {\"list\": [URL or {\"url\", \"name\"}, …] or "
         "\"template\": text, \"prepend\", \"parallel\", \"rate\"}}`; `{\"action\": "
         "\"rename\", \"name\": new name}` (also `renamelb`)",
     .reply = "201 and the bucket's document; or a page of the list; or 202 `{\"id\": \"del-…\"}`, "
              "the job; or 204",
     .errors = "job_state bucket_exists invalid_name invalid_json not_supported bucket_not_found "
               "invalid_spec no_targets node_unreachable too_large overloaded backend_denied "
               "backend_error backend_unavailable backend_timeout"},
    {.name = "bucket_change",
     .method = HTTP_PUT,
     .pattern = "/v1/buckets/{bucket}",
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_ADMIN,
     .begin = put_begin,
     .summary = "Changes a bucket's properties. Properties that are not named keep their value. "
                "A backend that is reached with the cluster's credentials needs the right `admin` "
                "on the cluster, a quota the right `operate`.",
     .body = "`{\"action\": \"setprops\", \"value\": {props}}`",
     .reply = "200 and the bucket's document",
     .errors = "bucket_not_found invalid_name invalid_json not_supported"},
    {.name = "bucket_destroy",
     .method = HTTP_DELETE,
     .pattern = "/v1/buckets/{bucket}",
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_ADMIN,
     .begin = delete_begin,
     .summary = "Destroys a bucket and the objects in it.",
     .body = "optional: `{\"action\": \"destroy\"}` (also `destroylb`)",
     .reply = "204",
     .errors = "bucket_not_found invalid_name"},
    {.name = NULL},
};
