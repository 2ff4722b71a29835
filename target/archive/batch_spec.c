#include "target/archive/batch_spec.h"

#include <string.h>

#include "cluster/documents/names.h"
#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"

static int parse_range(json_t *obj, const char *path, struct batch_entry *e, struct error *err)
{
    int code = json_get_u64(obj, path, "offset", &e->offset, err);
    if (code == 0)
        code = json_get_u64(obj, path, "length", &e->length, err);
    bool has_length = json_object_get(obj, "length") != NULL;
    e->ranged = has_length || json_object_get(obj, "offset") != NULL;
    if (code == 0 && has_length && e->length == 0)
        code = error_set(err, E_INVALID, "%s.length is 0: it must be 1 or more", path);
    if (code == 0 && e->offset > INT64_MAX - e->length)
        code = error_set(err, E_INVALID, "%s: offset and length exceed 2^63 bytes", path);
    return code;
}

static int parse_entry(json_t *obj, size_t i, struct batch_entry *e, struct error *err)
{
    static const char *const fields[] = {"bucket", "object", "member", "offset", "length", NULL};
    char path[40];
    snprintf(path, sizeof path, "entries[%zu]", i);
    if (!json_is_object(obj))
        return error_set(err, E_JSON, "%s is no object", path);
    int code = json_only_fields(obj, path, fields, err);
    if (code == 0)
        code = json_need_str(obj, path, "bucket", &e->bucket, err);
    if (code == 0)
        code = json_need_str(obj, path, "object", &e->object, err);
    if (code == 0)
        code = json_get_str(obj, path, "member", &e->member, err);
    if (code == 0 && e->member != NULL && *e->member == '\0')
        code = error_set(err, E_INVALID, "%s.member is empty: it must name a member", path);
    if (code == 0)
        code = parse_range(obj, path, e, err);
    if (code == 0 && (bucket_name_check(e->bucket, err) != 0 ||
                      object_name_check(e->object, strlen(e->object), err) != 0))
        code = error_recode(err, E_NAME, "%s", path);
    return code;
}

static int parse_missing(json_t *doc, bool *empty, struct error *err)
{
    const char *word = "fail";
    int code = json_get_str(doc, "", "on_missing", &word, err);
    if (code != 0)
        return code;
    *empty = strcmp(word, "empty") == 0;
    if (*empty || strcmp(word, "fail") == 0)
        return 0;
    return error_set(err, E_INVALID, "field 'on_missing' is '%s': it must be fail or empty", word);
}

static int parse(struct batch_spec *s, size_t entries_max, struct error *err)
{
    static const char *const fields[] = {"entries", "on_missing", NULL};
    json_t *entries = NULL;
    int code = json_only_fields(s->doc, "", fields, err);
    if (code == 0)
        code = parse_missing(s->doc, &s->empty_if_missing, err);
    if (code == 0)
        code = json_get_array(s->doc, "", "entries", &entries, err);
    if (code == 0 && entries == NULL)
        code = error_set(err, E_JSON, "field 'entries' is missing: it must be a list");
    if (code != 0)
        return code;
    s->count = json_array_size(entries);
    if (s->count > entries_max)
        return error_set(err, E_TOO_LARGE,
                         "the batch has %zu entries, at most %zu (batch_entries_max): send several",
                         s->count, entries_max);
    s->entries = xcalloc(s->count + 1, sizeof *s->entries);
    for (size_t i = 0; i < s->count && code == 0; i++)
        code = parse_entry(json_array_get(entries, i), i, &s->entries[i], err);
    return code;
}

int batch_spec_parse(const char *text, size_t len, size_t entries_max, struct batch_spec *out,
                     struct error *err)
{
    *out = (struct batch_spec){.doc = NULL};
    int code = json_parse(text, len, &out->doc, err);
    if (code == 0)
        code = parse(out, entries_max, err);
    if (code != 0)
        batch_spec_done(out);
    return code;
}

void batch_spec_done(struct batch_spec *s)
{
    json_decref(s->doc);
    free(s->entries);
    *s = (struct batch_spec){.doc = NULL};
}

void batch_entry_name(const struct batch_entry *e, bool missing, struct buf *out)
{
    buf_printf(out, "%s%s/%s", missing ? "__404__/" : "", e->bucket, e->object);
    if (e->member != NULL)
        buf_printf(out, "/%s", e->member);
}
