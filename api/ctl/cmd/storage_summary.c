/* storage summary. */
#include "api/ctl/commands.h"

#include "api/ctl/summaries.h"
#include "api/ctl/print/table.h"
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

/* Of one target's part, or of all (then `row` may know how many slices there should be). */
static void add_row(struct ctl *ctl, struct table *t, const char *bucket, const char *target,
                    json_t *row, const char *protection)
{
    char size[24];
    table_cell(t, bucket);
    table_cell(t, target);
    table_cellf(t, "%lld", int_at(row, "objects"));
    if (json_object_get(row, "slices_wanted") != NULL)
        table_cellf(t, "%lld of %lld", int_at(row, "slices"), int_at(row, "slices_wanted"));
    else
        table_cellf(t, "%lld", int_at(row, "slices"));
    table_cell(t, ctl_size(ctl, (uint64_t)int_at(row, "bytes"), size));
    table_cell(t, protection);
}

/* {"bucket": {"objects", "bytes", "internal", "internal_bytes", "slices", "sliced",
 * "slices_wanted", "lost", "lost_names", "targets": {…}, "quota_used": {"objects", "bytes"},
 * "quota_objects", "quota_bytes", "protection", "why", "missing": [target, …]}}, and who could not
 * be asked.  The three about a quota are there only for a bucket that has one. */
struct summary {
    json_t *all;
    json_t *missing;
};

static void add_to(json_t *sum, const char *field, json_t *row)
{
    json_object_set_new(sum, field, json_integer(int_at(sum, field) + int_at(row, field)));
}

static json_t *sum_of(json_t *all, const char *bucket)
{
    json_t *sum = json_object_get(all, bucket);
    if (sum == NULL) {
        sum = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:[], s:{}}", "objects", 0, "bytes", 0,
                        "internal", 0, "internal_bytes", 0, "slices", 0, "sliced", 0, "lost", 0,
                        "lost_names", "targets");
        json_object_set_new(all, bucket, sum);
    }
    return sum;
}

/* What this target counts for the bucket's quota; copies do not count twice. */
static void add_quota_used(json_t *sum, json_t *row)
{
    json_t *used = json_object_get(row, "quota_used");
    if (used == NULL)
        return;
    if (json_object_get(sum, "quota_used") == NULL)
        json_object_set_new(sum, "quota_used", json_pack("{s:i, s:i}", "objects", 0, "bytes", 0));
    add_to(json_object_get(sum, "quota_used"), "objects", used);
    add_to(json_object_get(sum, "quota_used"), "bytes", used);
}

/* The answer to `storage summary [BUCKET]` while it is put together. */
struct asking {
    struct ctl *ctl;
    struct table *t;
    json_t *all;
    const char *only;
};

/* One target's rows, and into the sums. */
static void add_target(void *ctx, const char *target, json_t *doc)
{
    const struct asking *a = ctx;
    size_t i;
    json_t *b;
    json_array_foreach(json_object_get(doc, "buckets"), i, b)
    {
        const char *name = text_at(b, "name");
        if (a->only != NULL && strcmp(a->only, name) != 0)
            continue;
        add_row(a->ctl, a->t, name, target, b, "");
        json_t *sum = sum_of(a->all, name);
        add_to(sum, "objects", b);
        add_to(sum, "bytes", b);
        add_to(sum, "internal", b);
        add_to(sum, "internal_bytes", b);
        add_to(sum, "slices", b);
        add_to(sum, "sliced", b);
        add_to(sum, "lost", b);
        add_quota_used(sum, b);
        json_array_extend(json_object_get(sum, "lost_names"), json_object_get(b, "lost_names"));
        json_object_set(json_object_get(sum, "targets"), target, b);
    }
}

/* Those who act for objects in slices have said how many these are. */
static void add_slices_wanted(json_t *row, json_t *bucket)
{
    json_t *ec = json_object_get(json_object_get(bucket, "props"), "ec");
    if (ec != NULL)
        json_object_set_new(
            row, "slices_wanted",
            json_integer(int_at(row, "sliced") * (int_at(ec, "data") + int_at(ec, "parity"))));
}

static void add_quota(json_t *row, json_t *bucket)
{
    static const char *const fields[] = {"quota_objects", "quota_bytes"};
    json_t *props = json_object_get(bucket, "props");
    for (size_t i = 0; i < 2; i++) {
        if (int_at(props, fields[i]) > 0)
            json_object_set(row, fields[i], json_object_get(props, fields[i]));
    }
}

/* How each bucket is kept, as far as the map knows, or that it has lost something; and whose part
 * of it is not known. */
static int add_protection(struct ctl *ctl, struct summary *sum, const char *only)
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
        const char *name = text_at(b, "name");
        if (only != NULL && strcmp(only, name) != 0)
            continue;
        json_t *row = sum_of(sum->all, name);
        add_slices_wanted(row, b);
        add_quota(row, b);
        json_object_set(row, "protection", json_object_get(b, "protection"));
        if (int_at(row, "lost") > 0)
            json_object_set_new(row, "protection", json_string("lost"));
        if (json_object_get(b, "why") != NULL)
            json_object_set(row, "why", json_object_get(b, "why"));
        if (json_array_size(sum->missing) > 0)
            json_object_set(row, "missing", sum->missing);
    }
    return code;
}

/* Slices that are not there, as far as it is known. */
static void say_lacking(const struct ctl *ctl, const char *bucket, json_t *row)
{
    json_int_t lacking = int_at(row, "slices_wanted") - int_at(row, "slices");
    if (lacking <= 0)
        return;
    if (json_object_get(row, "missing") != NULL)
        ctl_remark(ctl, "%s: slices that none of the targets that answer has: %lld", bucket,
                   lacking);
    else
        ctl_remark(ctl,
                   "%s: slices that are missing: %lld; 'dfcctl job start repair' makes them anew",
                   bucket, lacking);
}

static void say_lost(const struct ctl *ctl, const char *bucket, json_t *row)
{
    size_t i;
    json_t *name;
    if (int_at(row, "lost") == 0)
        return;
    ctl_remark(ctl,
               "%s: objects that are lost, since no target has their bytes: %lld; put them "
               "again, or delete them:",
               bucket, int_at(row, "lost"));
    json_array_foreach(json_object_get(row, "lost_names"), i, name)
        ctl_remark(ctl, "  %s", json_string_value(name));
}

/* What a list of the bucket does not show. */
static void say_internal(struct ctl *ctl, const char *bucket, json_t *row)
{
    char size[24];
    if (int_at(row, "internal") == 0)
        return;
    ctl_remark(ctl,
               "%s: %lld of these objects, %s, have names that begin with .dfc-: 'dfcctl ls "
               "--internal %s' lists them",
               bucket, int_at(row, "internal"),
               ctl_size(ctl, (uint64_t)int_at(row, "internal_bytes"), size), bucket);
}

static void say_quota(struct ctl *ctl, const char *bucket, json_t *row)
{
    json_t *used = json_object_get(row, "quota_used");
    char has[24], may[24];
    if (int_at(row, "quota_objects") > 0)
        ctl_remark(ctl, "%s: %lld of %lld objects of its quota", bucket, int_at(used, "objects"),
                   int_at(row, "quota_objects"));
    if (int_at(row, "quota_bytes") > 0)
        ctl_remark(ctl, "%s: %s of %s of its quota", bucket,
                   ctl_size(ctl, (uint64_t)int_at(used, "bytes"), has),
                   ctl_size(ctl, (uint64_t)int_at(row, "quota_bytes"), may));
}

static void print_sums(struct ctl *ctl, struct table *t, json_t *all)
{
    const char *bucket;
    json_t *row;
    json_object_foreach(all, bucket, row)
        add_row(ctl, t, bucket, "(all)", row, text_at(row, "protection"));
    table_print(t, ctl->out, ctl->headers, ctl->colour);
    json_object_foreach(all, bucket, row)
    {
        if (json_object_get(row, "why") != NULL)
            ctl_remark(ctl, "%s: %s", bucket, text_at(row, "why"));
        say_lacking(ctl, bucket, row);
        say_lost(ctl, bucket, row);
        say_internal(ctl, bucket, row);
        say_quota(ctl, bucket, row);
    }
}

int storage_summary(struct ctl *ctl, const struct args *args)
{
    static const char *const headers[] = {"BUCKET", "TARGET",     "OBJECTS", "SLICES",
                                          "BYTES",  "PROTECTION", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    _cleanup_json_ json_t *all = json_object();
    _cleanup_json_ json_t *missing = json_array();
    struct summary sum = {.all = all, .missing = missing};
    struct asking asking = {.ctl = ctl, .t = t, .all = all, .only = args->words[0]};
    int code = summaries_ask(ctl, "summary", add_target, &asking, missing);
    if (code == EXIT_OK)
        code = add_protection(ctl, &sum, args->words[0]);
    if (code != EXIT_OK)
        return code;
    if (args->words[0] != NULL && json_object_get(all, args->words[0]) == NULL) {
        struct error err;
        error_set(&err, E_BUCKET_NOT_FOUND, "bucket '%s' does not exist", args->words[0]);
        return ctl_fail_common(ctl, &err, EXIT_NOT_FOUND);
    }
    if (ctl->json)
        ctl_print_json(ctl, steal(all));
    else
        print_sums(ctl, t, all);
    return json_array_size(missing) > 0 ? EXIT_PARTIAL : EXIT_OK;
}
