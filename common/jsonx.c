#include "common/jsonx.h"

#include "common/buf.h"
#include "common/parse.h"
#include "common/utf8.h"

/* Measured with jansson 2.14 on a 64-bit machine, rounded up. */
enum {
    OBJECT_BYTES = 240,
    ARRAY_BYTES = 128,
    VALUE_BYTES = 96, /* of an object or array; beside the length of its text */
    MEMORY_BASE = 1 << 20,
    MEMORY_RATIO = 16, /* lists of short names take ten times their length */
};

/* The end of a string that begins before `at`. */
static size_t string_end(const char *text, size_t len, size_t at)
{
    while (at < len && text[at] != '"')
        at += text[at] == '\\' ? 2 : 1;
    return at;
}

static size_t memory_of(const char *text, size_t len)
{
    size_t bytes = len;
    for (size_t i = 0; i < len; i++) {
        switch (text[i]) {
        case '"':
            i = string_end(text, len, i + 1);
            break;
        case '{':
            bytes += OBJECT_BYTES;
            break;
        case '[':
            bytes += ARRAY_BYTES;
            break;
        case ',':
            bytes += VALUE_BYTES;
            break;
        default:
            break;
        }
    }
    return bytes;
}

int json_memory(const char *text, size_t len, size_t *bytes, struct error *err)
{
    size_t limit = MEMORY_BASE + MEMORY_RATIO * len;
    *bytes = memory_of(text, len);
    if (*bytes > limit)
        return error_set(err, E_TOO_LARGE,
                         "the JSON text of %zu bytes has so many values that it takes %zu bytes of "
                         "memory, the limit is %zu: send fewer values",
                         len, *bytes, limit);
    return 0;
}

static int load(const char *text, size_t len, json_t **out, bool quotes, struct error *err)
{
    if (len == 0)
        return error_set(err, E_JSON,
                         "line 1, column 0: a JSON text is expected, and there is none");
    size_t memory;
    int code = json_memory(text, len, &memory, err);
    if (code != 0)
        return code;
    json_error_t why;
    json_t *value = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (value != NULL) {
        *out = value;
        return 0;
    }
    char *quoted = quotes ? NULL : strstr(why.text, " near '");
    if (quoted != NULL)
        *quoted = '\0';
    return error_set(err, E_JSON, "line %d, column %d: %s", why.line, why.column, why.text);
}

int json_parse(const char *text, size_t len, json_t **out, struct error *err)
{
    return load(text, len, out, true, err);
}

int json_parse_secret(const char *text, size_t len, json_t **out, struct error *err)
{
    return load(text, len, out, false, err);
}

/* "field 'algorithm.kind' must be WHAT" */
static int wrong_field(const char *path, const char *field, const char *what, struct error *err)
{
    return error_set(err, E_JSON, "field '%s%s%s' %s", path, path[0] != '\0' ? "." : "", field,
                     what);
}

/* The value of a field, NULL where it is missing or null. */
static json_t *field_value(json_t *obj, const char *field)
{
    json_t *value = json_object_get(obj, field);
    return json_is_null(value) ? NULL : value;
}

int json_get_str(json_t *obj, const char *path, const char *field, const char **out,
                 struct error *err)
{
    json_t *value = field_value(obj, field);
    if (value == NULL)
        return 0;
    if (!json_is_string(value))
        return wrong_field(path, field, "must be a string", err);
    *out = json_string_value(value);
    return 0;
}

int json_get_i64(json_t *obj, const char *path, const char *field, int64_t *out, struct error *err)
{
    json_t *value = field_value(obj, field);
    if (value == NULL)
        return 0;
    if (!json_is_integer(value))
        return wrong_field(path, field, "must be an integer", err);
    *out = json_integer_value(value);
    return 0;
}

int json_get_u64(json_t *obj, const char *path, const char *field, uint64_t *out, struct error *err)
{
    json_t *value = field_value(obj, field);
    if (value == NULL)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return wrong_field(path, field, "must be an integer that is not negative", err);
    *out = (uint64_t)json_integer_value(value);
    return 0;
}

int json_get_bool(json_t *obj, const char *path, const char *field, bool *out, struct error *err)
{
    json_t *value = field_value(obj, field);
    if (value == NULL)
        return 0;
    if (!json_is_boolean(value))
        return wrong_field(path, field, "must be true or false", err);
    *out = json_is_true(value);
    return 0;
}

/* An integer >= 0 in the base unit, or a text that `parse` takes. */
static int get_quantity(json_t *obj, const char *path, const char *field,
                        int (*parse)(const char *, uint64_t *, struct error *), const char *what,
                        uint64_t *out, struct error *err)
{
    json_t *value = field_value(obj, field);
    if (value == NULL)
        return 0;
    if (json_is_string(value)) {
        int rc = parse(json_string_value(value), out, err);
        if (rc != 0)
            return error_recode(err, E_JSON, "field '%s%s%s'", path, path[0] != '\0' ? "." : "",
                                field);
        return 0;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return wrong_field(path, field, what, err);
    *out = (uint64_t)json_integer_value(value);
    return 0;
}

int json_get_size(json_t *obj, const char *path, const char *field, uint64_t *out,
                  struct error *err)
{
    return get_quantity(obj, path, field, parse_size,
                        "must be a size: bytes, or a text such as \"10MiB\"", out, err);
}

int json_get_duration_ms(json_t *obj, const char *path, const char *field, uint64_t *out,
                         struct error *err)
{
    return get_quantity(obj, path, field, parse_duration_ms,
                        "must be a duration: milliseconds, or a text such as \"5s\"", out, err);
}

int json_get_object(json_t *obj, const char *path, const char *field, json_t **out,
                    struct error *err)
{
    json_t *value = field_value(obj, field);
    if (value == NULL)
        return 0;
    if (!json_is_object(value))
        return wrong_field(path, field, "must be an object", err);
    *out = value;
    return 0;
}

int json_get_array(json_t *obj, const char *path, const char *field, json_t **out,
                   struct error *err)
{
    json_t *value = field_value(obj, field);
    if (value == NULL)
        return 0;
    if (!json_is_array(value))
        return wrong_field(path, field, "must be an array", err);
    *out = value;
    return 0;
}

int json_need_str(json_t *obj, const char *path, const char *field, const char **out,
                  struct error *err)
{
    if (field_value(obj, field) == NULL)
        return wrong_field(path, field, "is missing", err);
    return json_get_str(obj, path, field, out, err);
}

int json_need_u64(json_t *obj, const char *path, const char *field, uint64_t *out,
                  struct error *err)
{
    if (field_value(obj, field) == NULL)
        return wrong_field(path, field, "is missing", err);
    return json_get_u64(obj, path, field, out, err);
}

static bool is_listed(const char *name, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (strcmp(name, *list) == 0)
            return true;
    }
    return false;
}

int json_only_fields(json_t *obj, const char *path, const char *const *allowed, struct error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach(obj, name, value)
    {
        if (!is_listed(name, allowed))
            return wrong_field(path, name, "is not known here", err);
    }
    return 0;
}

int json_parse_action(const char *text, size_t len, const char *action, json_t **doc,
                      const char **name, json_t **value, struct error *err)
{
    const char *const fields[] = {"action", "name", value != NULL ? "value" : NULL, NULL};
    const char *given = NULL;
    int r;
    if ((r = json_parse(text, len, doc, err)) != 0)
        return r;
    if (!json_is_object(*doc))
        return error_set(err, E_JSON, "the body must be an object with the field 'action'");
    if ((r = json_only_fields(*doc, "", fields, err)) != 0 ||
        (r = json_need_str(*doc, "", "action", &given, err)) != 0 ||
        (r = json_need_str(*doc, "", "name", name, err)) != 0 ||
        (value != NULL && (r = json_get_object(*doc, "", "value", value, err)) != 0))
        return r;
    if (strcmp(given, action) != 0)
        return error_set(err, E_INVALID, "field 'action': '%.64s' is not %s", given, action);
    return 0;
}

json_t *json_string_escaped(const char *text)
{
    size_t len = strlen(text);
    if (utf8_valid(text, len))
        return json_string(text);
    _cleanup_(buf_done)
    struct buf out = BUF_INIT;
    for (size_t at = 0; at < len;) {
        size_t size = utf8_sequence(text + at, len - at);
        if (size > 0)
            buf_append(&out, text + at, size);
        else
            buf_printf(&out, "\\x%02x", (unsigned char)text[at]);
        at += size > 0 ? size : 1;
    }
    return json_string(buf_str(&out));
}

enum { DIGITS_MIN = 15, DIGITS_MAX = 17 }; /* 15 are always kept, 17 tell any two doubles apart */

static size_t digits_of(double d)
{
    char text[40];
    size_t digits = DIGITS_MIN;
    for (; digits < DIGITS_MAX; digits++) {
        snprintf(text, sizeof text, "%.*g", (int)digits, d);
        if (strtod(text, NULL) == d)
            break;
    }
    return digits;
}

static size_t most_digits(const json_t *value)
{
    size_t most = 0, i;
    const char *key;
    json_t *one;
    if (json_is_real(value))
        return digits_of(json_real_value(value));
    json_object_foreach((json_t *)value, key, one)
    {
        size_t digits = most_digits(one);
        most = digits > most ? digits : most;
    }
    json_array_foreach(value, i, one)
    {
        size_t digits = most_digits(one);
        most = digits > most ? digits : most;
    }
    return most;
}

size_t json_precision(const json_t *value)
{
    size_t digits = most_digits(value);
    return digits > 0 ? JSON_REAL_PRECISION(digits) : 0;
}

char *json_text(const json_t *value)
{
    return json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | json_precision(value));
}

/* --- secrets ---------------------------------------------------------------------------------- */

/* Where a text is a URL and nothing else, all behind the "?" is its query.  In a sentence it ends
 * with a blank or a quotation mark. */
static bool is_url(const char *text)
{
    size_t scheme =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    return scheme > 0 && strncmp(text + scheme, "://", 3) == 0;
}

/* The text up to the end of the first query, which is cut out; NULL: it has none. */
static const char *mask_one(const char *text, const char *ends, struct buf *out)
{
    const char *scheme = strstr(text, "://");
    if (scheme == NULL)
        return NULL;
    size_t path = strcspn(scheme, ends);
    const char *query = scheme + path;
    buf_append(out, text, (size_t)(query - text));
    if (*query != '?')
        return query;
    buf_puts(out, "?…");
    return query + 1 + strcspn(query + 1, ends + 1);
}

static void mask_text(json_t *text)
{
    _cleanup_(buf_done)
    struct buf masked = BUF_INIT;
    const char *rest = json_string_value(text);
    const char *ends = is_url(rest) ? "?" : "? \t\n'\"";
    for (const char *next; (next = mask_one(rest, ends, &masked)) != NULL;)
        rest = next;
    if (masked.len == 0)
        return;
    buf_puts(&masked, rest);
    json_string_setn(text, masked.data, masked.len);
}

void json_mask_queries(json_t *doc)
{
    size_t i;
    const char *key;
    json_t *one;
    if (json_is_string(doc))
        mask_text(doc);
    json_array_foreach(doc, i, one) json_mask_queries(one);
    json_object_foreach(doc, key, one) json_mask_queries(one);
}
