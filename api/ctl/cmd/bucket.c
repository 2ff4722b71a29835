/* bucket create, ls, props, rm. */
#include "api/ctl/commands.h"

#include "api/ctl/cached.h"
#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct table, table_free);

static int fail_bucket(const struct ctl *ctl, const struct dfc_error *err, const char *verb,
                       const char *bucket)
{
    _cleanup_free_ char *what = xprintf("%s bucket '%s'", verb, bucket);
    return ctl_fail(ctl, err, what);
}

static json_t *prop_of_flag(const struct args *a, enum flag_id id)
{
    const struct flag *flag = &flag_table[id];
    if (flag->type == FLAG_count || flag->type == FLAG_size || flag->type == FLAG_duration)
        return json_integer((json_int_t)a->number[id]);
    if (strcmp(flag->choices, "true|false") == 0)
        return json_boolean(strcmp(a->text[id], "true") == 0);
    return json_string(a->text[id]);
}

/* The properties that flags name, as JSON text; NULL where none does. */
static char *props_of_flags(const struct args *a)
{
    static const char *const names[] = {
#define BUCKET_PROP(name, ...) #name,
#include "cluster/props/bucket_props.def"
#undef BUCKET_PROP
    };
    _cleanup_json_ json_t *props = json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (a->given[bucket_new_flags[i]])
            json_object_set_new(props, names[i], prop_of_flag(a, bucket_new_flags[i]));
    }
    return json_object_size(props) > 0 ? json_text(props) : NULL;
}

/* What is asked for may be more than there is. */
static void warn(struct ctl *ctl, json_t *doc)
{
    const char *why = json_string_value(json_object_get(doc, "why"));
    if (why != NULL)
        ctl_remark(ctl, "warning: bucket '%s' is %s: %s",
                   json_string_value(json_object_get(doc, "name")),
                   json_string_value(json_object_get(doc, "protection")), why);
}

static void warn_of(struct ctl *ctl, const char *bucket)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (dfc_bucket_show(ctl->client, bucket, &text, NULL) == DFC_OK &&
        json_parse(text, strlen(text), &doc, NULL) == 0)
        warn(ctl, doc);
}

int bucket_create(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *bucket = args->words[0];
    _cleanup_free_ char *props = props_of_flags(args);
    int rc = args->given[F_no_check] ? dfc_bucket_create(ctl->client, bucket, props, &err)
                                     : dfc_bucket_create_checked(ctl->client, bucket, props, &err);
    if (rc != DFC_OK)
        return fail_bucket(ctl, &err, "create", bucket);
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s}", "created", bucket));
    else
        ctl_say(ctl, "created %s", bucket);
    if (args->given[F_copies] || args->given[F_ec])
        warn_of(ctl, bucket);
    return EXIT_OK;
}

static void prop_cell(struct table *t, json_t *props, const char *field)
{
    json_t *value = json_object_get(props, field);
    if (value == NULL || json_is_null(value) || json_is_string(value)) {
        table_cell(t, json_string_value(value));
        return;
    }
    _cleanup_free_ char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    table_cell(t, text);
}

/* How often each object is there: "3", or "ec 4+2". */
static void redundancy_cell(struct table *t, json_t *props)
{
    json_t *ec = json_object_get(props, "ec");
    if (ec == NULL)
        prop_cell(t, props, "copies");
    else
        table_cellf(t, "ec %lld+%lld", json_integer_value(json_object_get(ec, "data")),
                    json_integer_value(json_object_get(ec, "parity")));
}

static void print_buckets(struct ctl *ctl, json_t *buckets)
{
    static const char *const headers[] = {"BUCKET",     "COPIES",  "DURABILITY",
                                          "CHECKSUM",   "BACKEND", "CACHED",
                                          "PROTECTION", "CREATED", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    size_t i;
    json_t *b;
    json_array_foreach(buckets, i, b)
    {
        char created[32], cached[CACHED_TEXT_MAX];
        json_t *props = json_object_get(b, "props");
        table_cell(t, json_string_value(json_object_get(b, "name")));
        redundancy_cell(t, props);
        prop_cell(t, props, "durability");
        prop_cell(t, props, "checksum");
        prop_cell(t, props, "backend");
        table_cell(t, cached_text(ctl, b, cached));
        prop_cell(t, b, "protection");
        table_cell(t, ctl_time(json_integer_value(json_object_get(b, "created_ms")), created));
    }
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

int bucket_ls(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (dfc_bucket_list(ctl->client, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "list buckets");
    int code = ctl_parse(ctl, text, &doc);
    if (code == EXIT_OK)
        code = cached_add(ctl, json_object_get(doc, "buckets"), args->given[F_totals]);
    if (code != EXIT_OK && code != EXIT_PARTIAL)
        return code;
    if (ctl->json)
        ctl_print_json(ctl, steal(doc));
    else
        print_buckets(ctl, json_object_get(doc, "buckets"));
    return code;
}

static void print_props(struct ctl *ctl, json_t *doc)
{
    static const char *const headers[] = {"PROPERTY", "VALUE", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    json_t *props = json_object_get(doc, "props");
    const char *key;
    json_t *value;
    json_object_foreach(props, key, value)
    {
        table_cell(t, key);
        prop_cell(t, props, key);
    }
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

int bucket_props(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *bucket = args->words[0];
    _cleanup_free_ char *props = props_of_flags(args);
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (props != NULL && dfc_bucket_set(ctl->client, bucket, props, &err) != DFC_OK)
        return fail_bucket(ctl, &err, "change", bucket);
    if (dfc_bucket_show(ctl->client, bucket, &text, &err) != DFC_OK)
        return fail_bucket(ctl, &err, "show", bucket);
    int code = ctl_parse(ctl, text, &doc);
    if (code != EXIT_OK)
        return code;
    if (ctl->json)
        ctl_print_json(ctl, steal(doc));
    else
        print_props(ctl, doc);
    warn(ctl, doc);
    return EXIT_OK;
}

static int destroy(struct ctl *ctl, const struct args *args, const char *bucket)
{
    struct dfc_error err;
    _cleanup_free_ char *question = xprintf("Destroy bucket '%s' and everything in it?", bucket);
    int code = ctl_confirm(ctl, args, question);
    if (code != EXIT_OK)
        return code;
    if (dfc_bucket_destroy(ctl->client, bucket, &err) != DFC_OK)
        return fail_bucket(ctl, &err, "destroy", bucket);
    ctl_say(ctl, "destroyed %s", bucket);
    return EXIT_OK;
}

int bucket_rm(struct ctl *ctl, const struct args *args)
{
    int worst = EXIT_OK;
    json_t *destroyed = json_array();
    for (size_t i = 0; i < args->word_count; i++) {
        int code = destroy(ctl, args, args->words[i]);
        if (code == EXIT_OK)
            json_array_append_new(destroyed, json_string(args->words[i]));
        else
            worst = code;
    }
    if (worst != EXIT_OK && json_array_size(destroyed) > 0)
        worst = EXIT_PARTIAL;
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:o}", "destroyed", destroyed));
    else
        json_decref(destroyed);
    return worst;
}
