/* object show. */
#include "api/ctl/commands.h"

#include <string.h>

#include "api/ctl/names/name.h"
#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

DEFINE_CLEANUP(struct table, table_free);

static const char *text_at(json_t *doc, const char *field)
{
    const char *text = json_string_value(json_object_get(doc, field));
    return text != NULL ? text : "-";
}

static bool is_at(json_t *doc, const char *field)
{
    return json_is_true(json_object_get(doc, field));
}

static const char *part_of(json_t *copy)
{
    return is_at(copy, "acting") ? "leader" : is_at(copy, "owner") ? "owner" : "-";
}

static const char *what_is_there(json_t *copy)
{
    json_t *intact = json_object_get(copy, "intact");
    if (json_object_get(copy, "error") != NULL)
        return text_at(json_object_get(copy, "error"), "code"); /* the JSON has the sentence */
    if (!is_at(copy, "found"))
        return "nothing";
    if (is_at(copy, "tombstone"))
        return "deleted";
    if (json_object_get(copy, "ec") != NULL)
        return "manifest";
    return intact == NULL ? "object" : json_is_true(intact) ? "intact" : "DAMAGED";
}

static const char *state_of_slice(json_t *slice)
{
    json_t *error = json_object_get(slice, "error"), *intact = json_object_get(slice, "intact");
    if (error != NULL)
        return text_at(error, "code");
    return intact == NULL ? "" : json_is_true(intact) ? "intact" : "DAMAGED";
}

static void add_slices(struct ctl *ctl, struct table *t, json_t *copy)
{
    size_t i;
    json_t *slice;
    json_array_foreach(json_object_get(copy, "slices"), i, slice)
    {
        char text[32];
        const char *state = state_of_slice(slice);
        table_cell(t, text_at(copy, "node"));
        table_cell(t, "-");
        table_cell(t, text_at(copy, "state"));
        table_cellf(t, "slice %lld%s%s", json_integer_value(json_object_get(slice, "slice")),
                    *state != '\0' ? ", " : "", state);
        table_cell(t, "-");
        table_cell(
            t, ctl_size(ctl, (uint64_t)json_integer_value(json_object_get(slice, "size")), text));
        table_cell(t, "-");
    }
}

static void add_row(struct ctl *ctl, struct table *t, json_t *copy)
{
    char text[32];
    json_t *sum = json_object_get(copy, "checksum");
    bool found = is_at(copy, "found");
    table_cell(t, text_at(copy, "node"));
    table_cell(t, part_of(copy));
    table_cellf(t, "%s%s%s", text_at(copy, "state"),
                strcmp(text_at(copy, "lag"), "none") != 0 ? ", " : "",
                strcmp(text_at(copy, "lag"), "none") != 0 ? text_at(copy, "lag") : "");
    table_cell(t, what_is_there(copy));
    table_cell(t, found ? text_at(copy, "version") : "-");
    table_cell(
        t, found ? ctl_size(ctl, (uint64_t)json_integer_value(json_object_get(copy, "size")), text)
                 : "-");
    table_cellf(t, "%s%s%s", text_at(sum, "type"), sum != NULL ? " " : "",
                sum != NULL ? text_at(sum, "value") : "");
}

/* What is missing they may have. */
static void print_silent(struct ctl *ctl, json_t *copies)
{
    size_t i, count = 0;
    json_t *copy;
    json_array_foreach(copies, i, copy)
    {
        if (json_object_get(copy, "error") != NULL)
            fprintf(ctl->out, "%s%s", count++ == 0 ? ", unless they are on " : ", ",
                    text_at(copy, "node"));
    }
}

/* What the table does not have. */
static void print_missing(struct ctl *ctl, json_t *doc)
{
    size_t i;
    json_t *missing = json_object_get(doc, "slices_missing"), *slice;
    json_int_t data = json_integer_value(json_object_get(json_object_get(doc, "ec"), "data"));
    json_int_t parity = json_integer_value(json_object_get(json_object_get(doc, "ec"), "parity"));
    json_int_t there = data + parity - (json_int_t)json_array_size(missing);
    fprintf(ctl->out, "\n%lld of %lld slices are there, %lld are needed", there, data + parity,
            data);
    json_array_foreach(missing, i, slice)
        fprintf(ctl->out, "%s%lld", i == 0 ? "; missing: " : ", ", json_integer_value(slice));
    if (json_array_size(missing) > 0)
        print_silent(ctl, json_object_get(doc, "copies"));
    fputc('\n', ctl->out);
}

static void print_copies(struct ctl *ctl, json_t *doc)
{
    static const char *const headers[] = {"TARGET",  "ROLE", "STATE",    "STORED",
                                          "VERSION", "SIZE", "CHECKSUM", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    size_t i;
    json_t *copy;
    json_array_foreach(json_object_get(doc, "copies"), i, copy)
    {
        if (is_at(copy, "owner") || is_at(copy, "found") || json_object_get(copy, "error") != NULL)
            add_row(ctl, t, copy);
        add_slices(ctl, t, copy);
    }
    table_print(t, ctl->out, ctl->headers, ctl->colour);
    if (json_object_get(doc, "ec") != NULL)
        print_missing(ctl, doc);
}

/* A target that does not answer may have it. */
static bool nobody_has_it(json_t *doc)
{
    size_t i;
    json_t *copy;
    json_array_foreach(json_object_get(doc, "copies"), i, copy)
    {
        if (is_at(copy, "found") || json_object_get(copy, "error") != NULL ||
            json_array_size(json_object_get(copy, "slices")) > 0)
            return false;
    }
    return true;
}

/* A read asks the backend of such a bucket. */
static int find_backend(struct ctl *ctl, const char *bucket, bool *has_backend)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (dfc_bucket_show(ctl->client, bucket, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "show");
    int code = ctl_parse(ctl, text, &doc);
    *has_backend = json_is_string(json_object_get(json_object_get(doc, "props"), "backend"));
    return code;
}

static int fail_missing(struct ctl *ctl, const struct object_name *n)
{
    struct error e = ERROR_INIT;
    error_set(&e, E_OBJECT_NOT_FOUND, "object '%s/%s' does not exist: no target has it", n->bucket,
              n->key);
    return ctl->json ? EXIT_NOT_FOUND : ctl_fail_common(ctl, &e, EXIT_NOT_FOUND);
}

int object_show(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    struct error e = ERROR_INIT;
    _cleanup_(object_name_done)
    struct object_name n = {0};
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (object_name_parse(args->words[0], &n, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    if (n.key[0] == '\0')
        return ctl_usage(ctl, "'%s' names no object: expected BUCKET/KEY", args->words[0]);
    if (dfc_object_copies(ctl->client, n.bucket, n.key, args->given[F_checksums], &text, &err) !=
        DFC_OK)
        return ctl_fail(ctl, &err, "show");
    int code = ctl_parse(ctl, text, &doc);
    if (code != EXIT_OK)
        return code;
    bool missing = nobody_has_it(doc), has_backend = false;
    if (missing && (code = find_backend(ctl, n.bucket, &has_backend)) != EXIT_OK)
        return code;
    if (ctl->json)
        ctl_print_json(ctl, steal(doc));
    else if (!missing || has_backend)
        print_copies(ctl, doc);
    if (missing && has_backend)
        ctl_remark(ctl, "dfcctl: '%s/%s': no target has it; the backend was not asked", n.bucket,
                   n.key);
    return missing && !has_backend ? fail_missing(ctl, &n) : EXIT_OK;
}
