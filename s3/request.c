#include "s3/request.h"

#include <string.h>
#include <strings.h>

#include "common/parse.h"

const char *s3_header(const struct s3_request *r, const char *name)
{
    for (size_t i = 0; i < r->header_count; i++) {
        if (strcasecmp(r->headers[i].name, name) == 0)
            return r->headers[i].value;
    }
    return NULL;
}

/* NULL: it cannot be decoded. */
static const char *decode(struct arena *arena, const char *text, size_t len)
{
    char *blanks = arena_strndup(arena, text, len);
    char *out = arena_bytes(arena, len + 1);
    for (char *at = blanks; *at != '\0'; at++) {
        if (*at == '+')
            *at = ' ';
    }
    return parse_url_unescape(blanks, len, out, NULL) < 0 ? NULL : out;
}

static bool add_pair(const char *pair, size_t len, struct arena *arena, struct s3_query *q)
{
    const char *equals = memchr(pair, '=', len);
    size_t name_len = equals != NULL ? (size_t)(equals - pair) : len;
    const char *name = decode(arena, pair, name_len);
    const char *value =
        equals != NULL ? decode(arena, equals + 1, len - name_len - 1) : arena_strdup(arena, "");
    if (name == NULL || value == NULL)
        return false;
    q->fields[q->count++] = (struct s3_field){name, value};
    return true;
}

static size_t count_pairs(const char *raw)
{
    size_t n = 0;
    for (const char *at = raw; *at != '\0'; at += strcspn(at, "&") + (at[strcspn(at, "&")] == '&'))
        n++;
    return n;
}

enum s3_error s3_query_parse(const char *raw, struct arena *arena, struct s3_query *out,
                             struct s3_failure *why)
{
    size_t count = count_pairs(raw);
    *out = (struct s3_query){.count = 0};
    if (count > S3_QUERY_MAX)
        return s3_fail(why, S3_INVALID_URI, "The query has more than %d parameters", S3_QUERY_MAX);
    out->fields = arena_alloc(arena, count * sizeof out->fields[0]);
    while (*raw != '\0') {
        size_t len = strcspn(raw, "&");
        if (len > 0 && !add_pair(raw, len, arena, out))
            return s3_fail(why, S3_INVALID_URI, "The query cannot be decoded");
        raw += len + (raw[len] == '&');
    }
    return S3_OK;
}

const char *s3_query_get(const struct s3_query *q, const char *name)
{
    for (size_t i = 0; i < q->count; i++) {
        if (strcmp(q->fields[i].name, name) == 0)
            return q->fields[i].value;
    }
    return NULL;
}

enum s3_error s3_read_number(const char *text, const char *name, unsigned *value,
                             struct s3_failure *why)
{
    uint64_t n = 0;
    if (text == NULL)
        return S3_OK;
    if (parse_u64(text, &n, NULL) != 0 || n > INT32_MAX)
        return s3_fail(why, S3_INVALID_ARGUMENT, "%s must be a number from 0 to %d", name,
                       INT32_MAX);
    *value = (unsigned)n;
    return S3_OK;
}

static int compare_fields(const void *a, const void *b)
{
    const struct s3_field *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : strcmp(x->value, y->value);
}

static const char *encode(struct arena *arena, const char *text)
{
    _cleanup_buf_ struct buf out = BUF_INIT;
    buf_put_url_escaped(&out, text, strlen(text), "");
    return arena_strdup(arena, buf_str(&out));
}

void s3_query_canonical(const struct s3_query *q, const char *except, struct arena *arena,
                        struct buf *out)
{
    struct s3_field *sorted = arena_alloc(arena, q->count * sizeof sorted[0]);
    size_t n = 0;
    for (size_t i = 0; i < q->count; i++) {
        if (strcmp(q->fields[i].name, except) != 0)
            sorted[n++] = (struct s3_field){encode(arena, q->fields[i].name),
                                            encode(arena, q->fields[i].value)};
    }
    if (n > 0)
        qsort(sorted, n, sizeof sorted[0], compare_fields);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s%s=%s", i > 0 ? "&" : "", sorted[i].name, sorted[i].value);
}
