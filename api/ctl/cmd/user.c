/* user ls, show, create, update, rm, password, key, grant, revoke; bucket grant, bucket revoke. */
#include "api/ctl/commands.h"

#include "api/ctl/grant_text.h"
#include "api/ctl/key_input.h"
#include "api/ctl/print/table.h"
#include "api/ctl/print/user_print.h"
#include "api/ctl/rate_flags.h"
#include "api/identity/secret.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct table, table_free);

static const char *text_at(json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));
    return text != NULL ? text : "";
}

static int fail(const struct ctl *ctl, const struct dfc_error *err, const char *user)
{
    _cleanup_free_ char *what = xprintf("user '%s'", user);
    return ctl_fail(ctl, err, what);
}

static int show(struct ctl *ctl, const char *text)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_parse(ctl, text, &doc);
    if (code == EXIT_OK && ctl->json)
        ctl_print_json(ctl, steal(doc));
    else if (code == EXIT_OK)
        user_print(ctl, doc);
    return code;
}

/* ---- looking ---- */

static void print_users(struct ctl *ctl, json_t *users)
{
    static const char *const headers[] = {"USER",  "KIND",   "ENABLED", "KEYS",
                                          "ROLES", "GRANTS", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    size_t i;
    json_t *one;
    json_array_foreach(users, i, one)
    {
        _cleanup_free_ char *roles = names_text(json_object_get(one, "roles"));
        _cleanup_free_ char *grants = grants_text(json_object_get(one, "grants"));
        table_cell(t, text_at(one, "name"));
        table_cell(t, text_at(one, "kind"));
        table_cell(t, json_is_false(json_object_get(one, "enabled")) ? "no" : "yes");
        table_cellf(t, "%zu", json_array_size(json_object_get(one, "keys")));
        table_cell(t, roles);
        table_cell(t, grants);
    }
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

int user_ls(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_free_ char *text = NULL;
    (void)args;
    if (dfc_user_list(ctl->client, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "users");
    int code = ctl_parse(ctl, text, &doc);
    if (code == EXIT_OK && ctl->json)
        ctl_print_json(ctl, steal(doc));
    else if (code == EXIT_OK)
        print_users(ctl, json_object_get(doc, "users"));
    return code;
}

int user_show(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    if (dfc_user_show(ctl->client, args->words[0], &text, &err) != DFC_OK)
        return fail(ctl, &err, args->words[0]);
    return show(ctl, text);
}

/* ---- changing ---- */

/* NULL: one is not UTF-8. */
static json_t *roles_of(const struct args *args)
{
    _cleanup_json_ json_t *roles = json_array();
    for (size_t i = 0; i < args->list_count[F_role]; i++) {
        if (json_array_append_new(roles, json_string(args->list[F_role][i])) != 0)
            return NULL;
    }
    return steal(roles);
}

/* The rate is one field of the user: a part that stays has to be known. */
static int add_rate(struct ctl *ctl, const struct args *args, json_t *doc)
{
    struct dfc_error err;
    const char *name = args->words[0];
    _cleanup_json_ json_t *before = NULL;
    _cleanup_free_ char *text = NULL;
    if (dfc_user_show(ctl->client, name, &text, &err) != DFC_OK)
        return fail(ctl, &err, name);
    int code = ctl_parse(ctl, text, &before);
    if (code == EXIT_OK)
        json_object_set_new(doc, "rate", rate_flags_read(args, json_object_get(before, "rate")));
    return code;
}

int user_create(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *name = args->words[0];
    const char *kind = args->given[F_kind] ? args->text[F_kind] : "service";
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s, s:o}", "name", name, "kind", kind, "roles", roles_of(args));
    if (doc == NULL)
        return ctl_usage(ctl, "the name, or a role, is not UTF-8");
    if (rate_flags_given(args))
        json_object_set_new(doc, "rate", rate_flags_read(args, NULL));
    _cleanup_free_ char *body = json_text(doc);
    if (dfc_user_create(ctl->client, body, &text, &err) != DFC_OK)
        return fail(ctl, &err, name);
    return show(ctl, text);
}

int user_update(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = json_object();
    if (args->given[F_role] && json_object_set_new(doc, "roles", roles_of(args)) != 0)
        return ctl_usage(ctl, "a role is not UTF-8");
    if (args->given[F_enabled])
        json_object_set_new(doc, "enabled", json_boolean(strcmp(args->text[F_enabled], "on") == 0));
    if (rate_flags_given(args)) {
        int code = add_rate(ctl, args, doc);
        if (code != EXIT_OK)
            return code;
    }
    if (json_object_size(doc) == 0)
        return ctl_usage(ctl, "nothing is to change: give --role, --enabled or a rate");
    _cleanup_free_ char *body = json_text(doc);
    if (dfc_user_change(ctl->client, args->words[0], body, &text, &err) != DFC_OK)
        return fail(ctl, &err, args->words[0]);
    return show(ctl, text);
}

int user_rm(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *name = args->words[0];
    _cleanup_free_ char *question = xprintf("Remove user '%s' with its keys?", name);
    int code = ctl_confirm(ctl, args, question);
    if (code != EXIT_OK)
        return code;
    if (dfc_user_remove(ctl->client, name, &err) != DFC_OK)
        return fail(ctl, &err, name);
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s}", "user", name));
    else
        ctl_say(ctl, "user '%s' removed", name);
    return EXIT_OK;
}

/* ---- passwords ---- */

int user_password(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *user = args->words[0];
    _cleanup_(secret_freep)
    char *password = NULL;
    int code = password_input_read(ctl, args->given[F_stdin], true, &password);
    if (code != EXIT_OK)
        return code;
    if (dfc_user_password(ctl->client, user, password, &err) != DFC_OK)
        return fail(ctl, &err, user);
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s}", "user", user));
    else
        ctl_say(ctl, "password of user '%s' set", user);
    return EXIT_OK;
}

/* ---- keys ---- */

/* The names of root.json, so that login --stdin takes it. */
static int print_key(struct ctl *ctl, const char *text)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_parse(ctl, text, &doc);
    if (code != EXIT_OK)
        return code;
    const char *access = text_at(doc, "access"), *secret = text_at(doc, "secret");
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:s}", "access_key", access, "secret_key", secret));
    else
        fprintf(ctl->out, "%s\n%s\n", access, secret);
    ctl_remark(ctl, "dfcctl: the secret key is shown this once");
    return EXIT_OK;
}

int user_key(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *action = args->words[0], *user = args->words[1];
    bool adds = strcmp(action, "add") == 0;
    _cleanup_(secret_freep)
    char *text = NULL;
    if ((!adds && strcmp(action, "rm") != 0) || (args->word_count == 2) != adds)
        return ctl_usage(ctl, "expected 'user key add USER' or 'user key rm USER KEY'");
    int rc = adds ? dfc_user_key_add(ctl->client, user, &text, &err)
                  : dfc_user_key_remove(ctl->client, user, args->words[2], &err);
    if (rc != DFC_OK)
        return fail(ctl, &err, user);
    if (adds)
        return print_key(ctl, text);
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:s}", "user", user, "access_key", args->words[2]));
    else
        ctl_say(ctl, "key '%s' of user '%s' removed", args->words[2], user);
    return EXIT_OK;
}

/* ---- grants ---- */

typedef int change_grant(struct dfc_client *c, const char *user, const char *grant, char **document,
                         struct dfc_error *err);

static int change(struct ctl *ctl, change_grant *call, const char *user, const json_t *grant)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_free_ char *body = json_text(grant);
    if (call(ctl->client, user, body, &text, &err) != DFC_OK)
        return fail(ctl, &err, user);
    return show(ctl, text);
}

static int of_user(struct ctl *ctl, const struct args *args, change_grant *call)
{
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *grant = NULL;
    if (grant_parse(args->words[1], &grant, &err) != 0)
        return ctl_fail_common(ctl, &err, EXIT_USAGE);
    return change(ctl, call, args->words[0], grant);
}

static int of_bucket(struct ctl *ctl, const struct args *args, change_grant *call)
{
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *grant = NULL;
    if (grant_make(args->words[2], args->words[0], args->text[F_prefix], &grant, &err) != 0)
        return ctl_fail_common(ctl, &err, EXIT_USAGE);
    return change(ctl, call, args->words[1], grant);
}

int user_grant(struct ctl *ctl, const struct args *args)
{
    return of_user(ctl, args, dfc_user_grant);
}

int user_revoke(struct ctl *ctl, const struct args *args)
{
    return of_user(ctl, args, dfc_user_revoke);
}

/* Rights may be given before the bucket is made; but the name may also be mistyped. */
static void warn_absent(struct ctl *ctl, const char *bucket)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    if (strpbrk(bucket, "*?") == NULL &&
        dfc_bucket_show(ctl->client, bucket, &text, &err) == DFC_NOT_FOUND)
        ctl_remark(ctl,
                   "warning: bucket '%s' does not exist yet: the rights are for one that is "
                   "created with this name",
                   bucket);
}

int bucket_grant(struct ctl *ctl, const struct args *args)
{
    int code = of_bucket(ctl, args, dfc_user_grant);
    if (code == EXIT_OK)
        warn_absent(ctl, args->words[0]);
    return code;
}

int bucket_revoke(struct ctl *ctl, const struct args *args)
{
    return of_bucket(ctl, args, dfc_user_revoke);
}
