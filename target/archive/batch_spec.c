#include "target/archive/batch_spec.h"

#include <string.h>

#include "cluster/documents/names.h"
#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "sort/shard/member_writer.h"

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
    static const char *const fields[] = {"bucket", "object", "member", "offset",
                                         "length", "opaque", NULL};
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
        code = json_get_str(obj, path, "opaque", &e->opaque, err);
    if (code == 0)
        code = parse_range(obj, path, e, err);
    if (code == 0 && (bucket_name_check(e->bucket, err) != 0 ||
                      object_name_check(e->object, strlen(e->object), err) != 0))
        code = error_recode(err, E_NAME, "%s", path);
    return code;
}

/* A field with two words, the first by default; *out: is it the second? */
static int parse_word(json_t *doc, const char *field, const char *first, const char *second,
                      bool *out, struct error *err)
{
    const char *word = first;
    int code = json_get_str(doc, "", field, &word, err);
    if (code != 0)
        return code;
    *out = strcmp(word, second) == 0;
    if (*out || strcmp(word, first) == 0)
        return 0;
    return error_set(err, E_INVALID, "field '%s' is '%s': it must be %s or %s", field, word, first,
                     second);
}

static int parse_format(json_t *doc, const struct shard_format_ops **out, struct error *err)
{
    const char *extension = ".tar";
    int code = json_get_str(doc, "", "format", &extension, err);
    if (code != 0)
        return code;
    code = member_writer_format(extension, "", out, err);
    return code != 0 ? error_wrap(err, "field 'format'") : 0;
}

/* How the reply looks. */
static int parse_form(struct batch_spec *s, struct error *err)
{
    int code = parse_word(s->doc, "on_missing", "fail", "empty", &s->empty_if_missing, err);
    if (code == 0)
        code = parse_word(s->doc, "names", "bucket", "object", &s->bare_names, err);
    if (code == 0)
        code = parse_format(s->doc, &s->format, err);
    return code != 0 ? code : json_get_bool(s->doc, "", "report", &s->report, err);
}

static int parse(struct batch_spec *s, size_t entries_max, struct error *err)
{
    static const char *const fields[] = {"entries", "on_missing", "format",
                                         "names",   "report",     NULL};
    json_t *entries = NULL;
    int code = json_only_fields(s->doc, "", fields, err);
    if (code == 0)
        code = parse_form(s, err);
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

void batch_entry_name(const struct batch_spec *s, const struct batch_entry *e, bool missing,
                      struct buf *out)
{
    if (missing)
        buf_puts(out, "__404__/");
    if (!s->bare_names)
        buf_printf(out, "%s/", e->bucket);
    buf_puts(out, e->object);
    if (e->member != NULL)
        buf_printf(out, "/%s", e->member);
}

int batch_entry_size(const struct batch_entry *e, uint64_t whole, uint64_t *out, struct error *err)
{
    if (e->ranged && e->offset >= whole)
        return error_set(err, E_RANGE, "the range begins behind its %llu bytes",
                         (unsigned long long)whole);
    uint64_t left = whole - e->offset;
    *out = e->length > 0 && e->length < left ? e->length : left;
    return 0;
}
