#include "proxy/ais/moss.h"

#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"

/* --- an entry --------------------------------------------------------------------------------- */

struct moss_in {
    const char *object, *bucket, *provider, *uname, *member, *opaque;
    int64_t start, length; /* -1: to the end; 0: not given */
};

static int check_range(const struct moss_in *in, const char *path, struct error *err)
{
    if (in->start < 0)
        return error_set(err, E_INVALID, "%s.start is %lld: it must be 0 or more", path,
                         (long long)in->start);
    if (in->length < -1)
        return error_set(err, E_INVALID,
                         "%s.length is %lld: it must be 1 or more, or -1 for all that follows",
                         path, (long long)in->length);
    if (in->start > 0 && in->length == 0)
        return error_set(err, E_INVALID,
                         "%s.length is missing: a start needs one, or -1 for all that follows",
                         path);
    return 0;
}

static int check_entry(const struct moss_in *in, const char *path, struct error *err)
{
    if (in->uname[0] != '\0')
        return error_set(err, E_UNSUPPORTED,
                         "%s.uname is not supported: name the object by objname and bucket", path);
    if (in->provider[0] != '\0' && strcmp(in->provider, "ais") != 0)
        return error_set(err, E_UNSUPPORTED,
                         "%s.provider is '%.32s': another one than ais is not supported (a bucket "
                         "with a backend is of provider ais, too)",
                         path, in->provider);
    if (in->bucket == NULL || in->bucket[0] == '\0')
        return error_set(err, E_INVALID, "%s.bucket is missing, and the path names none", path);
    return check_range(in, path, err);
}

static int read_entry(json_t *obj, const char *path, struct moss_in *in, struct error *err)
{
    static const char *const fields[] = {"objname",  "bucket", "provider", "uname", "opaque",
                                         "archpath", "start",  "length",   NULL};
    int code;
    if (!json_is_object(obj))
        return error_set(err, E_JSON, "%s is no object", path);
    if ((code = json_only_fields(obj, path, fields, err)) != 0 ||
        (code = json_need_str(obj, path, "objname", &in->object, err)) != 0 ||
        (code = json_get_str(obj, path, "bucket", &in->bucket, err)) != 0 ||
        (code = json_get_str(obj, path, "provider", &in->provider, err)) != 0 ||
        (code = json_get_str(obj, path, "uname", &in->uname, err)) != 0 ||
        (code = json_get_str(obj, path, "opaque", &in->opaque, err)) != 0 ||
        (code = json_get_str(obj, path, "archpath", &in->member, err)) != 0 ||
        (code = json_get_i64(obj, path, "start", &in->start, err)) != 0 ||
        (code = json_get_i64(obj, path, "length", &in->length, err)) != 0)
        return code;
    return check_entry(in, path, err);
}

static void set_text(json_t *out, const char *field, const char *text)
{
    if (text[0] != '\0')
        json_object_set_new(out, field, json_string(text));
}

static json_t *native_entry(const struct moss_in *in)
{
    json_t *out = json_object();
    json_object_set_new(out, "bucket", json_string(in->bucket));
    json_object_set_new(out, "object", json_string(in->object));
    set_text(out, "member", in->member);
    set_text(out, "opaque", in->opaque);
    if (in->start > 0)
        json_object_set_new(out, "offset", json_integer(in->start));
    if (in->length > 0)
        json_object_set_new(out, "length", json_integer(in->length));
    return out;
}

static int add_entry(json_t *entries, json_t *obj, size_t i, const char *bucket, struct error *err)
{
    struct moss_in in = {.bucket = bucket, .provider = "", .uname = "", .member = "", .opaque = ""};
    char path[40];
    snprintf(path, sizeof path, "in[%zu]", i);
    int code = read_entry(obj, path, &in, err);
    if (code == 0)
        json_array_append_new(entries, native_entry(&in));
    return code;
}

/* --- the document ----------------------------------------------------------------------------- */

struct moss {
    json_t *in;
    const char *mime;
    bool continues, bare_names, streams;
};

static int read_form(json_t *doc, struct moss *m, struct error *err)
{
    static const char *const fields[] = {"in", "mime", "coer", "onob", "strm", "coloc", NULL};
    int code;
    if (!json_is_object(doc))
        return error_set(err, E_JSON, "the body must be an object with the field 'in'");
    if ((code = json_only_fields(doc, "", fields, err)) != 0 ||
        (code = json_get_array(doc, "", "in", &m->in, err)) != 0 ||
        (code = json_get_str(doc, "", "mime", &m->mime, err)) != 0 ||
        (code = json_get_bool(doc, "", "coer", &m->continues, err)) != 0 ||
        (code = json_get_bool(doc, "", "onob", &m->bare_names, err)) != 0 ||
        (code = json_get_bool(doc, "", "strm", &m->streams, err)) != 0)
        return code;
    return json_array_size(m->in) > 0
               ? 0
               : error_set(err, E_INVALID, "field 'in' is empty: it must name objects");
}

/* Some clients of AIStore leave the dot out. */
static const char *extension_of(const struct moss *m, char *text, size_t size)
{
    if (m->mime[0] == '\0')
        return ".tar";
    snprintf(text, size, "%s%s", m->mime[0] == '.' ? "" : ".", m->mime);
    return text;
}

static int put_native(const struct moss *m, json_t *entries, struct buf *out, struct error *err)
{
    char extension[40];
    _cleanup_json_ json_t *doc = json_pack(
        "{s:O, s:s, s:s, s:s, s:b}", "entries", entries, "on_missing",
        m->continues ? "empty" : "fail", "format", extension_of(m, extension, sizeof extension),
        "names", m->bare_names ? "object" : "bucket", "report", !m->streams);
    _cleanup_free_ char *text = doc != NULL ? json_dumps(doc, JSON_COMPACT) : NULL;
    if (text == NULL)
        return error_set(err, E_INVALID, "field 'mime' is no extension of an archive");
    buf_puts(out, text);
    return 0;
}

int moss_translate(const char *data, size_t len, const char *bucket, struct buf *out,
                   struct error *err)
{
    struct moss m = {.mime = ""};
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_json_ json_t *entries = json_array();
    int code = json_parse(data, len, &doc, err);
    if (code == 0)
        code = read_form(doc, &m, err);
    for (size_t i = 0; code == 0 && i < json_array_size(m.in); i++)
        code = add_entry(entries, json_array_get(m.in, i), i, bucket, err);
    return code != 0 ? code : put_native(&m, entries, out, err);
}
