#include "api/ctl/cached.h"

#include "api/ctl/summaries.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

static json_int_t int_at(json_t *obj, const char *field)
{
    return json_integer_value(json_object_get(obj, field));
}

static const char *name_of(json_t *bucket)
{
    return json_string_value(json_object_get(bucket, "name"));
}

static bool has_backend(json_t *bucket)
{
    return json_object_get(json_object_get(bucket, "props"), "backend") != NULL;
}

/* --- by the targets' indexes ------------------------------------------------------------------ */

static void add_to(json_t *sum, const char *field, json_t *row)
{
    json_object_set_new(sum, field, json_integer(int_at(sum, field) + int_at(row, field)));
}

/* One target's buckets, into the sums of those that are listed. */
static void add_target(void *ctx, const char *target, json_t *doc)
{
    json_t *sums = ctx, *row;
    size_t i;
    (void)target;
    json_array_foreach(json_object_get(doc, "buckets"), i, row)
    {
        json_t *sum = json_object_get(sums, name_of(row));
        if (sum != NULL) {
            add_to(sum, "objects", row);
            add_to(sum, "bytes", row);
        }
    }
}

static int ask_targets(struct ctl *ctl, json_t *sums)
{
    _cleanup_json_ json_t *missing = json_array();
    const char *name;
    json_t *sum;
    int code = summaries_ask(ctl, "cached", add_target, sums, missing);
    if (code != EXIT_OK || json_array_size(missing) == 0)
        return code;
    json_object_foreach(sums, name, sum) json_object_set(sum, "missing", missing);
    return EXIT_PARTIAL;
}

/* --- by the whole list ------------------------------------------------------------------------ */

static int sum_list(struct dfc_list *list, json_t *sum, struct dfc_error *err)
{
    const struct dfc_entry *e;
    uint64_t objects = 0, bytes = 0, of_objects = 0, of_bytes = 0;
    int rc;
    while ((rc = dfc_list_next(list, &e, err)) > 0) {
        of_objects++;
        of_bytes += e->size;
        objects += !e->cold;
        bytes += e->cold ? 0 : e->size;
    }
    if (rc < 0)
        return rc;
    json_object_set_new(sum, "objects", json_integer((json_int_t)objects));
    json_object_set_new(sum, "bytes", json_integer((json_int_t)bytes));
    json_object_set_new(sum, "of_objects", json_integer((json_int_t)of_objects));
    json_object_set_new(sum, "of_bytes", json_integer((json_int_t)of_bytes));
    return DFC_OK;
}

static int count_list(struct ctl *ctl, const char *name, json_t *sum)
{
    struct dfc_error err;
    struct dfc_list *list;
    int rc = dfc_list_open(ctl->client, name, NULL, &list, &err);
    if (rc == DFC_OK) {
        rc = sum_list(list, sum, &err);
        dfc_list_close(list);
    }
    if (rc == DFC_OK)
        return EXIT_OK;
    ctl_remark(ctl, "'%s' cannot be listed, so that its total is not known: %s", name, err.message);
    return EXIT_PARTIAL;
}

static int count_lists(struct ctl *ctl, json_t *buckets)
{
    int worst = EXIT_OK;
    size_t i;
    json_t *b;
    json_array_foreach(buckets, i, b)
    {
        if (!has_backend(b) || !json_is_true(json_object_get(b, "listed")))
            continue;
        int code = count_list(ctl, name_of(b), json_object_get(b, "cached"));
        worst = code != EXIT_OK ? code : worst;
    }
    return worst;
}

/* --- both ------------------------------------------------------------------------------------- */

int cached_add(struct ctl *ctl, json_t *buckets, bool totals)
{
    _cleanup_json_ json_t *sums = json_object();
    size_t i;
    json_t *b;
    json_array_foreach(buckets, i, b)
    {
        if (!has_backend(b))
            continue;
        json_t *sum = json_pack("{s:i, s:i}", "objects", 0, "bytes", 0);
        json_object_set_new(b, "cached", sum);
        json_object_set(sums, name_of(b), sum);
    }
    if (json_object_size(sums) == 0)
        return EXIT_OK;
    int code = ask_targets(ctl, sums);
    if (!totals || (code != EXIT_OK && code != EXIT_PARTIAL))
        return code;
    int listed = count_lists(ctl, buckets);
    return listed != EXIT_OK ? listed : code;
}

const char *cached_text(const struct ctl *ctl, json_t *bucket, char out[static CACHED_TEXT_MAX])
{
    json_t *sum = json_object_get(bucket, "cached");
    char size[24], of_size[24];
    if (sum == NULL)
        return NULL;
    json_int_t bytes = int_at(sum, "bytes"), of_bytes = int_at(sum, "of_bytes");
    ctl_size(ctl, (uint64_t)bytes, size);
    if (json_object_get(sum, "of_objects") == NULL)
        snprintf(out, CACHED_TEXT_MAX, "%lld (%s)", int_at(sum, "objects"), size);
    else
        snprintf(out, CACHED_TEXT_MAX, "%lld of %lld (%s of %s, %.0f%%)", int_at(sum, "objects"),
                 int_at(sum, "of_objects"), size, ctl_size(ctl, (uint64_t)of_bytes, of_size),
                 of_bytes > 0 ? 100.0 * (double)bytes / (double)of_bytes : 100.0);
    return out;
}
