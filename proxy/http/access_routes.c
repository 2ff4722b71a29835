#include "proxy/http/access_routes.h"

#include <openssl/crypto.h>
#include <string.h>

#include "access/decide.h"
#include "access/password.h"
#include "access/seal.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/reseal.h"

/* --- replies ---------------------------------------------------------------------------------- */

static void reply_user(struct http_request *req, const char *name, int status)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct user *u = access_user(&s->access, name);
    struct error err;
    if (u == NULL) {
        error_set(&err, E_USER_NOT_FOUND, "user '%.80s' does not exist", name);
        http_reply_error(req, &err);
        return;
    }
    _cleanup_json_ json_t *doc = user_to_json(u, ACCESS_PUBLIC);
    http_reply_json(req, status, doc);
}

static void reply_role(struct http_request *req, const char *name)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct grants *grants = access_role_grants(&s->access, name);
    const struct role *r = access_role(&s->access, name);
    struct error err;
    if (grants == NULL) {
        error_set(&err, E_ROLE_NOT_FOUND, "role '%.80s' does not exist", name);
        http_reply_error(req, &err);
        return;
    }
    _cleanup_json_ json_t *doc = r != NULL ? role_to_json(r)
                                           : json_pack("{s:s, s:o, s:b}", "name", name, "grants",
                                                       grants_to_json(grants), "builtin", true);
    http_reply_json(req, 200, doc);
}

/* --- looking ---------------------------------------------------------------------------------- */

static void users_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter(req);
    if (p == NULL)
        return;
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_json_ json_t *doc = access_to_json(&s->access, ACCESS_PUBLIC);
    json_object_del(doc, "roles");
    http_reply_json(req, 200, doc);
}

static void user_begin(struct http_request *req)
{
    if (proxy_enter(req) != NULL)
        reply_user(req, http_path_param(req, "user"), 200);
}

static void roles_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter(req);
    if (p == NULL)
        return;
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    json_t *roles = json_array();
    for (size_t i = 0; builtin_role_at(i) != NULL; i++) {
        const struct builtin_role *r = builtin_role_at(i);
        json_array_append_new(roles, json_pack("{s:s, s:o, s:b}", "name", r->name, "grants",
                                               grants_to_json(&r->grants), "builtin", true));
    }
    for (size_t i = 0; i < s->access.role_count; i++)
        json_array_append_new(roles, role_to_json(&s->access.roles[i]));
    _cleanup_json_ json_t *doc = json_pack("{s:o}", "roles", roles);
    http_reply_json(req, 200, doc);
}

static void role_begin(struct http_request *req)
{
    if (proxy_enter(req) != NULL)
        reply_role(req, http_path_param(req, "role"));
}

/* --- a change: read, commit, reply ------------------------------------------------------------ */

/* Lives in the request's arena. */
struct change {
    struct http_request *req;
    char access[ACCESS_KEY_CHARS + 1], secret[SECRET_CHARS + 1];
    char *name;
    void (*reply)(const struct change *c);
};

static void wipe_secret(void *arg)
{
    struct change *c = arg;
    OPENSSL_cleanse(c->secret, sizeof c->secret);
}

static struct change *change_new(struct http_request *req, const char *name,
                                 void (*reply)(const struct change *c))
{
    struct change *c = arena_alloc(http_arena(req), sizeof *c);
    *c = (struct change){.req = req, .name = arena_strdup(http_arena(req), name), .reply = reply};
    http_on_end(req, wipe_secret, c);
    return c;
}

static void committed(void *arg, const struct error *err)
{
    struct change *c = arg;
    if (err != NULL) {
        proxy_reply_error(c->req, err);
        return;
    }
    log_info("access changed", lstr("call", http_route(c->req)->name), lstr("name", c->name),
             lstr("user", http_actor(c->req)->name), lstr("request", http_request_id(c->req)));
    c->reply(c);
}

static void commit(struct change *c, struct command *cmd)
{
    cmd->wall_ms = clock_wall_ms();
    cmd->actor = http_actor(c->req)->id;
    proxy_commit_settled(http_user(c->req), cmd, committed, c);
}

static void reply_empty(const struct change *c)
{
    http_reply_empty(c->req, 204);
}

static void reply_changed_user(const struct change *c)
{
    reply_user(c->req, c->name, 200);
}

static void reply_new_user(const struct change *c)
{
    reply_user(c->req, c->name, 201);
}

static void reply_changed_role(const struct change *c)
{
    reply_role(c->req, c->name);
}

static void reply_secret(const struct change *c)
{
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:s}", "access", c->access, "secret", c->secret);
    http_reply_json(c->req, 201, doc);
}

/* A body that is a JSON object, and what to do with it; 0: it has replied, or will. */
static void with_body(struct http_request *req, const char *data, size_t len,
                      int (*run)(struct http_request *req, json_t *doc, struct error *err))
{
    _cleanup_json_ json_t *doc = NULL;
    struct error err = ERROR_INIT;
    int r = json_parse_secret(data, len, &doc, &err);
    if (r == 0 && !json_is_object(doc))
        r = error_set(&err, E_JSON, "the body must be an object");
    if (r != 0 || run(req, doc, &err) != 0)
        proxy_reply_error(req, &err);
}

static void collect(struct http_request *req,
                    void (*fn)(struct http_request *req, const char *data, size_t len))
{
    const struct proxy *p = http_user(req);
    if (!proxy_passed_to_primary(req))
        http_collect_body(req, p->params.body_max, fn);
}

/* --- users ------------------------------------------------------------------------------------ */

/* A cluster with users asks for proof: the first user of an open one would keep its primary from
 * the next start. */
static int need_lock(const struct http_request *req, struct error *err)
{
    const struct proxy *p = http_user(req);
    if (p->guard != NULL)
        return 0;
    return error_set(
        err, E_UNSUPPORTED,
        "proxy '%s' was started without --public-auth, and users are for clusters with "
        "access control: start all nodes with it",
        p->id);
}

static int add_user(struct http_request *req, json_t *doc, struct error *err)
{
    char id[USER_ID_CHARS + 1];
    const char *name;
    int r = need_lock(req, err);
    if (r == 0)
        r = json_need_str(doc, "", "name", &name, err);
    if (r != 0)
        return r;
    user_id_new(id);
    struct command cmd = {.kind = CMD_USER_ADD, .text = id, .patch = doc};
    commit(change_new(req, name, reply_new_user), &cmd);
    return 0;
}

static void add_body(struct http_request *req, const char *data, size_t len)
{
    with_body(req, data, len, add_user);
}

static void add_begin(struct http_request *req)
{
    collect(req, add_body);
}

static int change_user(struct http_request *req, json_t *doc, struct error *err)
{
    const char *name = http_path_param(req, "user");
    struct command cmd = {.kind = CMD_USER_CHANGE, .name = name, .patch = doc};
    (void)err;
    commit(change_new(req, name, reply_changed_user), &cmd);
    return 0;
}

static void change_body(struct http_request *req, const char *data, size_t len)
{
    with_body(req, data, len, change_user);
}

static void change_begin(struct http_request *req)
{
    collect(req, change_body);
}

static void remove_begin(struct http_request *req)
{
    const char *name = http_path_param(req, "user");
    struct command cmd = {.kind = CMD_USER_REMOVE, .name = name};
    if (!proxy_passed_to_primary(req))
        commit(change_new(req, name, reply_empty), &cmd);
}

/* {"action": "grant" or "revoke", "value": a grant} */
static int change_grants(struct http_request *req, json_t *doc, struct error *err)
{
    static const char *const fields[] = {"action", "value", NULL};
    const char *name = http_path_param(req, "user");
    const char *action;
    struct command cmd = {.name = name, .patch = json_object_get(doc, "value")};
    int r;
    if ((r = need_lock(req, err)) != 0 || (r = json_only_fields(doc, "", fields, err)) != 0 ||
        (r = json_need_str(doc, "", "action", &action, err)) != 0)
        return r;
    if (cmd.patch == NULL)
        return error_set(err, E_JSON, "field 'value', the grant, is missing");
    cmd.kind = strcmp(action, "grant") == 0 ? CMD_GRANT : CMD_REVOKE;
    if (cmd.kind == CMD_REVOKE && strcmp(action, "revoke") != 0)
        return error_set(err, E_INVALID, "field 'action': '%.64s' is not grant or revoke", action);
    commit(change_new(req, name, reply_changed_user), &cmd);
    return 0;
}

static void grants_body(struct http_request *req, const char *data, size_t len)
{
    with_body(req, data, len, change_grants);
}

static void grants_begin(struct http_request *req)
{
    collect(req, grants_body);
}

/* --- keys and passwords ----------------------------------------------------------------------- */

/* The text of the secret stays with the change until it is replied. */
static int seal_new_key(struct change *c, const struct user *u, char sealed[static SEALED_MAX],
                        struct error *err)
{
    struct cluster_keys keys = {0};
    int r = sealing_keys(http_user(c->req), &keys, err);
    if (r == 0) {
        secret_new(c->access, c->secret);
        r = seal_secret(&keys, u->id, c->access, c->secret, sealed, err);
    }
    OPENSSL_cleanse(&keys, sizeof keys);
    return r;
}

static int make_key(struct change *c, struct error *err)
{
    struct proxy *p = http_user(c->req);
    char sealed[SEALED_MAX];
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct user *u = access_user(&s->access, c->name);
    if (u == NULL)
        return error_set(err, E_USER_NOT_FOUND, "user '%.80s' does not exist", c->name);
    int r = seal_new_key(c, u, sealed, err);
    if (r != 0)
        return r;
    const struct access_key key = {
        .access = c->access, .secret = sealed, .created_ms = clock_wall_ms()};
    struct command cmd = {.kind = CMD_KEY_ADD, .name = c->name, .key = &key};
    commit(c, &cmd);
    return 0;
}

static void add_key_begin(struct http_request *req)
{
    struct error err = ERROR_INIT;
    if (proxy_passed_to_primary(req))
        return;
    if (make_key(change_new(req, http_path_param(req, "user"), reply_secret), &err) != 0)
        proxy_reply_error(req, &err);
}

static void remove_key_begin(struct http_request *req)
{
    const char *name = http_path_param(req, "user");
    struct command cmd = {
        .kind = CMD_KEY_REMOVE, .name = name, .text = http_path_param(req, "key")};
    if (!proxy_passed_to_primary(req))
        commit(change_new(req, name, reply_empty), &cmd);
}

struct password {
    struct change *change;
    char *text;
};

/* In a thread of the pool: a hash takes 100 ms. */
static void hash_password(void *arg)
{
    struct password *w = arg;
    char hash[PASSWORD_HASH_MAX];
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(w->change->req));
    int r = password_hash(w->text, hash, &err);
    OPENSSL_cleanse(w->text, strlen(w->text));
    if (r != 0) {
        proxy_reply_error(w->change->req, &err);
    } else {
        struct command cmd = {.kind = CMD_PASSWORD, .name = w->change->name, .text = hash};
        commit(w->change, &cmd);
    }
    log_set_request(NULL);
}

static int set_password(struct http_request *req, json_t *doc, struct error *err)
{
    static const char *const fields[] = {"password", NULL};
    const struct proxy *p = http_user(req);
    const char *text;
    int r;
    if ((r = json_only_fields(doc, "", fields, err)) != 0 ||
        (r = json_need_str(doc, "", "password", &text, err)) != 0)
        return r;
    struct password *w = arena_alloc(http_arena(req), sizeof *w);
    w->change = change_new(req, http_path_param(req, "user"), reply_empty);
    w->text = arena_strdup(http_arena(req), text);
    return pool_submit(p->passwords, hash_password, w, err);
}

static void password_body(struct http_request *req, const char *data, size_t len)
{
    with_body(req, data, len, set_password);
}

static void password_begin(struct http_request *req)
{
    collect(req, password_body);
}

/* --- roles ------------------------------------------------------------------------------------ */

static int put_role(struct http_request *req, json_t *doc, struct error *err)
{
    const char *name = http_path_param(req, "role");
    struct command cmd = {.kind = CMD_ROLE_PUT, .patch = doc};
    if (json_object_get(doc, "name") != NULL)
        return error_set(err, E_JSON, "field 'name' is not known here: the path has the name");
    json_object_set_new(doc, "name", json_string(name));
    commit(change_new(req, name, reply_changed_role), &cmd);
    return 0;
}

static void role_body(struct http_request *req, const char *data, size_t len)
{
    with_body(req, data, len, put_role);
}

static void put_role_begin(struct http_request *req)
{
    collect(req, role_body);
}

static void remove_role_begin(struct http_request *req)
{
    const char *name = http_path_param(req, "role");
    struct command cmd = {.kind = CMD_ROLE_REMOVE, .name = name};
    if (!proxy_passed_to_primary(req))
        commit(change_new(req, name, reply_empty), &cmd);
}

/* --- explain ---------------------------------------------------------------------------------- */

static int question_of(const struct http_request *req, const struct cluster_state *s,
                       struct access_question *q, struct error *err)
{
    const char *right = http_query(req, "right");
    q->bucket = http_query(req, "bucket");
    q->key = http_query(req, "object");
    q->key_len = q->key != NULL ? strlen(q->key) : 0;
    if (right == NULL || (q->bucket == NULL && q->key != NULL))
        return error_set(err, E_INVALID,
                         "a question has parameter 'right', and 'object' with "
                         "'bucket' alone");
    q->right = right_parse(q->bucket != NULL ? RIGHT_SCOPE_BUCKET : RIGHT_SCOPE_CLUSTER, right);
    if (q->right == RIGHT_UNSET) {
        bool of_bucket = q->bucket != NULL;
        _cleanup_free_ char *names =
            right_names(of_bucket ? RIGHT_SCOPE_BUCKET : RIGHT_SCOPE_CLUSTER);
        return error_set(err, E_INVALID,
                         "parameter 'right': '%.64s' is no right on %s; expected %s", right,
                         of_bucket ? "buckets" : "the cluster", names);
    }
    const struct bucket *b = q->bucket != NULL ? bmd_bucket(&s->bmd, q->bucket) : NULL;
    q->owner = b != NULL ? b->owner : NULL;
    return 0;
}

static void explain_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter(req);
    struct access_question q = {.right = RIGHT_UNSET};
    struct error err = ERROR_INIT;
    if (p == NULL)
        return;
    const char *name = http_query(req, "user");
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct user *u = name != NULL ? access_user(&s->access, name) : NULL;
    int r = question_of(req, s, &q, &err);
    if (r == 0 && u == NULL && name != NULL && strcmp(name, USER_ANONYMOUS) != 0)
        r = error_set(&err, E_USER_NOT_FOUND, "user '%.80s' does not exist", name);
    if (r != 0) {
        http_reply_error(req, &err);
        return;
    }
    char text[ACCESS_RULE_CHARS];
    struct access_decision d = access_decide(&s->access, u, &q);
    _cleanup_json_ json_t *doc =
        json_pack("{s:b, s:s}", "allowed", d.allowed, "rule", access_rule_text(&d, text));
    http_reply_json(req, 200, doc);
}

/* --- the table -------------------------------------------------------------------------------- */

#define USER_FORM                                                                                \
    "`{\"id\", \"name\", \"kind\", \"enabled\", \"roles\", \"grants\", \"keys\": [{\"access\", " \
    "\"created_ms\"}], \"tokens_after_ms\", \"rate\"}`; empty fields are left out"
#define USER_BODY                                                                                 \
    "\"kind\": \"person\" or \"service\", \"enabled\": true, \"roles\": [name], \"grants\": "     \
    "[{\"rights\": [\"read\"], \"bucket\": \"b*\", \"prefix\": \"\"}], \"rate\": {\"requests\": " \
    "0, \"bytes\": 0}}`"
#define ROW(call, verb, path)                                                          \
    .name = call, .method = verb, .pattern = path, .nets = NET_CONTROL, .admin = true, \
    .right = RIGHT_USERS

const struct http_route access_routes[] = {
    {ROW("users", HTTP_GET, "/v1/users"), .begin = users_begin,
     .summary = "All users, without secrets and passwords.", .body = "",
     .reply = "`{\"version\", \"users\": […]}`", .errors = ""},
    {ROW("user_get", HTTP_GET, "/v1/users/{user}"), .begin = user_begin, .summary = "One user.",
     .body = "", .reply = USER_FORM, .errors = "user_not_found"},
    {ROW("user_add", HTTP_POST, "/v1/users"), .changes = true, .begin = add_begin,
     .summary = "Makes a user. The first user raises the format of the state to 3, which earlier "
                "releases refuse.",
     .body = "`{\"name\": …, " USER_BODY, .reply = "201 and the user",
     .errors = "user_exists role_not_found invalid_name invalid_argument invalid_json overloaded"},
    {ROW("user_change", HTTP_PUT, "/v1/users/{user}"), .changes = true, .begin = change_begin,
     .summary = "Changes the fields of a user that the body has.", .body = "`{" USER_BODY,
     .reply = "200 and the user",
     .errors = "user_not_found role_not_found invalid_argument invalid_json"},
    {ROW("user_remove", HTTP_DELETE, "/v1/users/{user}"), .changes = true, .begin = remove_begin,
     .summary = "Removes a user with its keys.", .body = "", .reply = "204",
     .errors = "user_not_found"},
    {ROW("user_grants", HTTP_POST, "/v1/users/{user}/grants"), .changes = true,
     .begin = grants_begin,
     .summary = "Gives rights on one place to a user, or takes them. The user anonymous is "
                "everybody, and is made by its first grant.",
     .body = "`{\"action\": \"grant\" or \"revoke\", \"value\": {\"rights\": [\"read\"], "
             "\"bucket\": \"b*\", \"prefix\": \"\"}}`; without a bucket: on the cluster",
     .reply = "200 and the user",
     .errors = "user_not_found not_found overloaded invalid_argument invalid_json"},
    {ROW("key_add", HTTP_POST, "/v1/users/{user}/keys"), .changes = true, .begin = add_key_begin,
     .summary = "Makes an access key. Its secret is shown this once. A user has two keys at most.",
     .body = "", .reply = "201 `{\"access\", \"secret\"}`",
     .errors = "user_not_found overloaded not_supported invalid_argument"},
    {ROW("key_remove", HTTP_DELETE, "/v1/users/{user}/keys/{key}"), .changes = true,
     .begin = remove_key_begin,
     .summary = "Removes an access key. The tokens that it gave end; those of another key go on.",
     .body = "", .reply = "204", .errors = "user_not_found not_found"},
    {ROW("password_set", HTTP_PUT, "/v1/users/{user}/password"), .changes = true,
     .begin = password_begin,
     .summary = "Sets the password of a person. Tokens that were issued before end.",
     .body = "`{\"password\": 8 to 1024 bytes}`", .reply = "204",
     .errors = "user_not_found invalid_argument invalid_json overloaded"},
    {ROW("roles", HTTP_GET, "/v1/roles"), .begin = roles_begin,
     .summary = "All roles, also those that are built in.", .body = "",
     .reply = "`{\"roles\": [{\"name\", \"grants\", \"rate\", \"builtin\"}]}`", .errors = ""},
    {ROW("role_get", HTTP_GET, "/v1/roles/{role}"), .begin = role_begin, .summary = "One role.",
     .body = "", .reply = "`{\"name\", \"grants\", \"rate\", \"builtin\"}`",
     .errors = "role_not_found"},
    {ROW("role_put", HTTP_PUT, "/v1/roles/{role}"), .changes = true, .begin = put_role_begin,
     .summary = "Makes or replaces a role.", .body = "`{\"grants\": […], \"rate\": {…}}`",
     .reply = "200 and the role",
     .errors = "overloaded invalid_name invalid_argument invalid_json"},
    {ROW("role_remove", HTTP_DELETE, "/v1/roles/{role}"), .changes = true,
     .begin = remove_role_begin, .summary = "Removes a role that no user has.", .body = "",
     .reply = "204", .errors = "role_not_found precondition_failed invalid_argument"},
    {ROW("auth_explain", HTTP_GET, "/v1/auth/explain"), .begin = explain_begin,
     .summary = "Whether a user has a right, and by which rule.",
     .query =
         HTTP_PARAMETERS({"user", "name; without it: anonymous"},
                         {"right", "list, read, write, delete or admin on a bucket; see, jobs, "
                                   "operate, users, create or admin on the cluster"},
                         {"bucket", "name; without it: the cluster"}, {"object", "name"}),
     .body = "", .reply = "`{\"allowed\", \"rule\"}`", .errors = "user_not_found invalid_argument"},
    {.name = NULL},
};
