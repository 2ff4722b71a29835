/* role ls, show, set, rm; auth explain. */
#include "api/ctl/commands.h"

#include "api/ctl/grant_text.h"
#include "api/ctl/print/table.h"
#include "api/ctl/print/user_print.h"
#include "api/ctl/rate_flags.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct table, table_free);

static int fail(const struct ctl *ctl, const struct dfc_error *err, const char *role)
{
    _cleanup_free_ char *what = xprintf("role '%s'", role);
    return ctl_fail(ctl, err, what);
}

static void put_row(const struct ctl *ctl, struct table *t, json_t *role)
{
    const char *name = json_string_value(json_object_get(role, "name"));
    _cleanup_free_ char *grants = grants_text(json_object_get(role, "grants"));
    _cleanup_free_ char *rate = rate_text(ctl, json_object_get(role, "rate"));
    table_cell(t, name != NULL ? name : "");
    table_cell(t, json_is_true(json_object_get(role, "builtin")) ? "yes" : "no");
    table_cell(t, grants);
    table_cell(t, rate);
}

/* `roles`: an array, or one of them. */
static void print_roles(struct ctl *ctl, json_t *roles)
{
    static const char *const headers[] = {"ROLE", "BUILT IN", "GRANTS", "RATE", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    size_t i;
    json_t *one;
    if (json_is_object(roles))
        put_row(ctl, t, roles);
    json_array_foreach(roles, i, one) put_row(ctl, t, one);
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

/* field: of the array; NULL: the document is one role. */
static int show(struct ctl *ctl, const char *text, const char *field)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_parse(ctl, text, &doc);
    if (code == EXIT_OK && ctl->json)
        ctl_print_json(ctl, steal(doc));
    else if (code == EXIT_OK)
        print_roles(ctl, field != NULL ? json_object_get(doc, field) : doc);
    return code;
}

int role_ls(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    (void)args;
    if (dfc_role_list(ctl->client, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "roles");
    return show(ctl, text, "roles");
}

int role_show(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    if (dfc_role_show(ctl->client, args->words[0], &text, &err) != DFC_OK)
        return fail(ctl, &err, args->words[0]);
    return show(ctl, text, NULL);
}

/* The rate is one field of the role: a part that stays has to be known.  A new role has none. */
static int add_rate(struct ctl *ctl, const struct args *args, json_t *doc)
{
    struct dfc_error err;
    _cleanup_json_ json_t *before = NULL;
    _cleanup_free_ char *text = NULL;
    int rc = dfc_role_show(ctl->client, args->words[0], &text, &err);
    if (rc != DFC_OK && rc != DFC_NOT_FOUND)
        return fail(ctl, &err, args->words[0]);
    int code = rc == DFC_OK ? ctl_parse(ctl, text, &before) : EXIT_OK;
    if (code == EXIT_OK)
        json_object_set_new(doc, "rate", rate_flags_read(args, json_object_get(before, "rate")));
    return code;
}

int role_set(struct ctl *ctl, const struct args *args)
{
    struct dfc_error failure;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *text = NULL;
    json_t *grants = json_array();
    _cleanup_json_ json_t *doc = json_pack("{s:o}", "grants", grants);
    for (size_t i = 1; i < args->word_count; i++) {
        json_t *one;
        if (grant_parse(args->words[i], &one, &err) != 0)
            return ctl_fail_common(ctl, &err, EXIT_USAGE);
        json_array_append_new(grants, one);
    }
    int code = add_rate(ctl, args, doc);
    if (code != EXIT_OK)
        return code;
    _cleanup_free_ char *body = json_text(doc);
    if (dfc_role_set(ctl->client, args->words[0], body, &text, &failure) != DFC_OK)
        return fail(ctl, &failure, args->words[0]);
    return show(ctl, text, NULL);
}

int role_rm(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *role = args->words[0];
    _cleanup_free_ char *question = xprintf("Remove role '%s'?", role);
    int code = ctl_confirm(ctl, args, question);
    if (code != EXIT_OK)
        return code;
    if (dfc_role_remove(ctl->client, role, &err) != DFC_OK)
        return fail(ctl, &err, role);
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s}", "role", role));
    else
        ctl_say(ctl, "role '%s' removed", role);
    return EXIT_OK;
}

int auth_explain(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_free_ char *text = NULL;
    const char *place = args->word_count > 2 ? args->words[2] : NULL;
    const char *slash = place != NULL ? strchr(place, '/') : NULL;
    _cleanup_free_ char *bucket = place != NULL ? xstrndup(place, strcspn(place, "/")) : NULL;
    if (dfc_access_explain(ctl->client, args->words[0], args->words[1], bucket,
                           slash != NULL ? slash + 1 : NULL, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "explain");
    int code = ctl_parse(ctl, text, &doc);
    if (code != EXIT_OK)
        return code;
    const char *rule = json_string_value(json_object_get(doc, "rule"));
    bool allowed = json_is_true(json_object_get(doc, "allowed"));
    if (ctl->json)
        ctl_print_json(ctl, steal(doc));
    else
        fprintf(ctl->out, "%s: %s\n", allowed ? "allowed" : "denied", rule != NULL ? rule : "");
    return EXIT_OK;
}
