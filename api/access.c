/* dfc_user_*, dfc_role_*, dfc_access_explain: who may do what. */
#include "api/dfc.h"

#include "api/admin.h"
#include "api/failure.h"
#include "api/identity/secret.h"
#include "api/uri.h"
#include "common/jsonx.h"
#include "common/mem.h"

/* Appends "/name", or says that it cannot be one. */
static int put_name(struct buf *path, const char *name, struct dfc_error *err)
{
    if (name == NULL || name[0] == '\0' || strchr(name, '/') != NULL)
        return failure_set(err, DFC_INVALID, E_NAME, "'%s' is not the name of a user, role or key",
                           name != NULL ? name : "");
    buf_putc(path, '/');
    buf_put_url_escaped(path, name, strlen(name), "");
    return DFC_OK;
}

/* /v1/ROOM/NAME/PART/LAST: each but the room may be NULL. */
struct place {
    const char *room, *name, *part, *last;
};

static int call(struct dfc_client *c, const struct call_small *what, const struct place *at,
                char **document, struct dfc_error *err)
{
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = DFC_OK;
    buf_printf(&path, "/v1/%s", at->room);
    if (at->name != NULL)
        rc = put_name(&path, at->name, err);
    if (rc == DFC_OK && at->part != NULL)
        rc = put_name(&path, at->part, err);
    if (rc == DFC_OK && at->last != NULL)
        rc = put_name(&path, at->last, err);
    return rc == DFC_OK ? admin_call(c, what, NULL, &path, document, err) : rc;
}

static int get(struct dfc_client *c, const char *room, const char *name, char **document,
               struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    return call(c, &what, &(struct place){.room = room, .name = name}, document, err);
}

int dfc_user_list(struct dfc_client *c, char **document, struct dfc_error *err)
{
    return get(c, "users", NULL, document, err);
}

int dfc_user_show(struct dfc_client *c, const char *user, char **document, struct dfc_error *err)
{
    return get(c, "users", user != NULL ? user : "", document, err);
}

int dfc_user_create(struct dfc_client *c, const char *value, char **document, struct dfc_error *err)
{
    const struct call_small what = {.method = "POST", .body = value};
    return call(c, &what, &(struct place){.room = "users"}, document, err);
}

int dfc_user_change(struct dfc_client *c, const char *user, const char *value, char **document,
                    struct dfc_error *err)
{
    const struct call_small what = {.method = "PUT", .body = value, .twice_is_harmless = true};
    return call(c, &what, &(struct place){.room = "users", .name = user}, document, err);
}

int dfc_user_remove(struct dfc_client *c, const char *user, struct dfc_error *err)
{
    const struct call_small what = {.method = "DELETE"};
    return call(c, &what, &(struct place){.room = "users", .name = user}, NULL, err);
}

static int change_grants(struct dfc_client *c, const char *user, const char *action,
                         const char *grant, char **document, struct dfc_error *err)
{
    _cleanup_free_ char *body = xprintf("{\"action\": \"%s\", \"value\": %s}", action, grant);
    const struct call_small what = {.method = "POST", .body = body};
    const struct place at = {.room = "users", .name = user, .part = "grants"};
    return call(c, &what, &at, document, err);
}

int dfc_user_grant(struct dfc_client *c, const char *user, const char *grant, char **document,
                   struct dfc_error *err)
{
    return change_grants(c, user, "grant", grant, document, err);
}

int dfc_user_revoke(struct dfc_client *c, const char *user, const char *grant, char **document,
                    struct dfc_error *err)
{
    return change_grants(c, user, "revoke", grant, document, err);
}

int dfc_user_password(struct dfc_client *c, const char *user, const char *password,
                      struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = json_pack("{s:s}", "password", password);
    if (doc == NULL)
        return failure_set(err, DFC_INVALID, E_INVALID, "the password is missing, or is not UTF-8");
    _cleanup_(secret_freep)
    char *body = json_text(doc);
    const struct call_small what = {
        .method = "PUT", .body = body, .twice_is_harmless = true, .has_password = true};
    const struct place at = {.room = "users", .name = user, .part = "password"};
    return call(c, &what, &at, NULL, err);
}

int dfc_user_key_add(struct dfc_client *c, const char *user, char **document, struct dfc_error *err)
{
    const struct call_small what = {.method = "POST"};
    const struct place at = {.room = "users", .name = user, .part = "keys"};
    return call(c, &what, &at, document, err);
}

int dfc_user_key_remove(struct dfc_client *c, const char *user, const char *access_key,
                        struct dfc_error *err)
{
    const struct call_small what = {.method = "DELETE"};
    const struct place at = {.room = "users", .name = user, .part = "keys", .last = access_key};
    return call(c, &what, &at, NULL, err);
}

int dfc_role_list(struct dfc_client *c, char **document, struct dfc_error *err)
{
    return get(c, "roles", NULL, document, err);
}

int dfc_role_show(struct dfc_client *c, const char *role, char **document, struct dfc_error *err)
{
    return get(c, "roles", role != NULL ? role : "", document, err);
}

int dfc_role_set(struct dfc_client *c, const char *role, const char *value, char **document,
                 struct dfc_error *err)
{
    const struct call_small what = {.method = "PUT", .body = value, .twice_is_harmless = true};
    return call(c, &what, &(struct place){.room = "roles", .name = role}, document, err);
}

int dfc_role_remove(struct dfc_client *c, const char *role, struct dfc_error *err)
{
    const struct call_small what = {.method = "DELETE"};
    return call(c, &what, &(struct place){.room = "roles", .name = role}, NULL, err);
}

int dfc_access_explain(struct dfc_client *c, const char *user, const char *right,
                       const char *bucket, const char *object, char **document,
                       struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/auth/explain");
    uri_query(&path, "user", user);
    uri_query(&path, "right", right);
    uri_query(&path, "bucket", bucket);
    uri_query(&path, "object", object);
    return admin_call(c, &what, NULL, &path, document, err);
}
