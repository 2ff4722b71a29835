/* storage summary. */
#include "api/ctl/commands.h"

#include "api/ctl/table.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct table, table_free);

static const char *text_at(json_t *obj, const char *field)
{
    const char *text = json_string_value(json_object_get(obj, field));
    return text != NULL ? text : "-";
}

static json_int_t int_at(json_t *obj, const char *field)
{
    return json_integer_value(json_object_get(obj, field));
}

static void add_row(struct ctl *ctl, struct table *t, const char *bucket, const char *target,
                    json_int_t objects, json_int_t bytes, const char *protection)
{
    char size[24];
    table_cell(t, bucket);
    table_cell(t, target);
    table_cellf(t, "%lld", (long long)objects);
    table_cell(t, ctl_size(ctl, (uint64_t)bytes, size));
    table_cell(t, protection);
}

/* One target's rows, and into the sums of `all`: {"bucket": {"objects", "bytes", "targets": {…}}}.
 */
static void add_target(struct ctl *ctl, struct table *t, json_t *all, const char *target,
                       json_t *doc, const char *only)
{
    size_t i;
    json_t *b;
    json_array_foreach(json_object_get(doc, "buckets"), i, b)
    {
        const char *name = text_at(b, "name");
        if (only != NULL && strcmp(only, name) != 0)
            continue;
        add_row(ctl, t, name, target, int_at(b, "objects"), int_at(b, "bytes"), "");
        json_t *sum = json_object_get(all, name);
        if (sum == NULL) {
            sum = json_pack("{s:i, s:i, s:{}}", "objects", 0, "bytes", 0, "targets");
            json_object_set_new(all, name, sum);
        }
        json_object_set_new(sum, "objects",
                            json_integer(int_at(sum, "objects") + int_at(b, "objects")));
        json_object_set_new(sum, "bytes", json_integer(int_at(sum, "bytes") + int_at(b, "bytes")));
        json_object_set(json_object_get(sum, "targets"), target, b);
    }
}

static int ask_target(struct ctl *ctl, struct table *t, json_t *all, const char *target,
                      const char *only)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (dfc_node_show(ctl->client, target, "summary", &text, &err) != DFC_OK) {
        _cleanup_free_ char *what = xprintf("node '%s'", target);
        return ctl_fail(ctl, &err, what);
    }
    int code = ctl_parse(ctl, text, &doc);
    if (code == EXIT_OK)
        add_target(ctl, t, all, target, doc, only);
    return code;
}

/* A sum that lacks a target would look like a smaller one: the first that cannot tell ends it. */
static int ask_targets(struct ctl *ctl, struct table *t, json_t *all, const char *only)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (dfc_cluster_show(ctl->client, NULL, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "cluster");
    int code = ctl_parse(ctl, text, &doc);
    size_t i;
    json_t *n;
    json_array_foreach(json_object_get(doc, "nodes"), i, n)
    {
        if (code == EXIT_OK && strcmp(text_at(n, "role"), "target") == 0)
            code = ask_target(ctl, t, all, text_at(n, "id"), only);
    }
    return code;
}

/* How the copies of each bucket are, as far as the map knows. */
static int add_protection(struct ctl *ctl, json_t *all)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (dfc_bucket_list(ctl->client, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "list buckets");
    int code = ctl_parse(ctl, text, &doc);
    size_t i;
    json_t *b;
    json_array_foreach(json_object_get(doc, "buckets"), i, b)
    {
        json_t *sum = json_object_get(all, text_at(b, "name"));
        if (sum != NULL)
            json_object_set_new(sum, "protection", json_string(text_at(b, "protection")));
    }
    return code;
}

int storage_summary(struct ctl *ctl, const struct args *args)
{
    static const char *const headers[] = {"BUCKET", "TARGET",     "OBJECTS",
                                          "BYTES",  "PROTECTION", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    _cleanup_json_ json_t *all = json_object();
    int code = ask_targets(ctl, t, all, args->words[0]);
    if (code == EXIT_OK)
        code = add_protection(ctl, all);
    if (code != EXIT_OK)
        return code;
    if (ctl->json) {
        ctl_print_json(ctl, steal(all));
        return EXIT_OK;
    }
    const char *bucket;
    json_t *sum;
    json_object_foreach(all, bucket, sum) add_row(ctl, t, bucket, "(all)", int_at(sum, "objects"),
                                                  int_at(sum, "bytes"), text_at(sum, "protection"));
    table_print(t, ctl->out, ctl->headers, ctl->colour);
    return EXIT_OK;
}
