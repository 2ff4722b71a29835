#include "gateway/native_head.h"

#include <string.h>
#include <strings.h>

#include "gateway/etag.h"

#define S3_META "x-amz-meta-"
#define NATIVE_META "Dfc-Meta-"
#define NATIVE_SUM "Dfc-Sum"
#define NATIVE_MISSING "Dfc-Missing"
#define NATIVE_PARTS "Dfc-Parts"
#define NATIVE_PART_SUMS "Dfc-Part-Sums"

enum { META_BYTES_MAX = 2048, LINES_FIRST = 16 };

void native_head_begin(struct native_head *h, struct arena *arena)
{
    *h = (struct native_head){.arena = arena, .room = LINES_FIRST};
    h->lines = arena_alloc(h->arena, h->room * sizeof h->lines[0]);
}

static void grow(struct native_head *h)
{
    const char **lines = arena_alloc(h->arena, 2 * h->room * sizeof lines[0]);
    memcpy(lines, h->lines, h->count * sizeof lines[0]);
    h->lines = lines;
    h->room *= 2;
}

void native_head_add(struct native_head *h, const char *name, const char *value)
{
    if (h->count + 1 == h->room)
        grow(h);
    h->lines[h->count++] = http_header_line(h->arena, name, value);
    h->lines[h->count] = NULL;
}

/* --- conditions ------------------------------------------------------------------------------- */

static void put_as_it_is(const char *value, struct buf *out)
{
    buf_puts(out, value);
}

struct translation {
    const char *s3, *native;
    void (*put)(const char *value, struct buf *out);
};

#define END              \
    {                    \
        NULL, NULL, NULL \
    }
static const struct translation of_a_read[] = {
    {"If-Match", "If-Match", etag_put_native},
    {"If-None-Match", "If-None-Match", etag_put_native},
    {"If-Range", "If-Range", etag_put_native_one},
    {"If-Modified-Since", "If-Modified-Since", put_as_it_is},
    {"If-Unmodified-Since", "If-Unmodified-Since", put_as_it_is},
    END,
};
static const struct translation of_a_write[] = {
    {"If-Match", "If-Match", etag_put_native},
    {"If-None-Match", "If-None-Match", etag_put_native},
    END,
};
static const struct translation of_a_delete[] = {
    {"If-Match", "If-Match", etag_put_native},
    END,
};
static const struct translation of_a_source[] = {
    {"x-amz-copy-source-if-match", "If-Match", etag_put_native},
    {"x-amz-copy-source-if-none-match", "If-None-Match", etag_put_native},
    {"x-amz-copy-source-if-modified-since", "If-Modified-Since", put_as_it_is},
    {"x-amz-copy-source-if-unmodified-since", "If-Unmodified-Since", put_as_it_is},
    END,
};

static void translate(struct native_head *h, const struct gateway_call *call,
                      const struct translation *row)
{
    for (; row->s3 != NULL; row++) {
        _cleanup_buf_ struct buf value = BUF_INIT;
        const char *text = s3_header(&call->head, row->s3);
        if (text == NULL)
            continue;
        row->put(text, &value);
        native_head_add(h, row->native, buf_str(&value));
    }
}

void native_head_conditions_of_read(struct native_head *h, const struct gateway_call *call)
{
    translate(h, call, of_a_read);
}

/* What is not there: a native write has a failed condition, and AWS NoSuchKey. */
void native_head_conditions_of_write(struct native_head *h, const struct gateway_call *call)
{
    translate(h, call, of_a_write);
    if (s3_header(&call->head, "If-Match") != NULL)
        native_head_add(h, NATIVE_MISSING, "not-found");
}

void native_head_conditions_of_delete(struct native_head *h, const struct gateway_call *call)
{
    translate(h, call, of_a_delete);
}

void native_head_conditions_of_source(struct native_head *h, const struct gateway_call *call)
{
    translate(h, call, of_a_source);
}

/* --- what is stored --------------------------------------------------------------------------- */

/* Headers that an object keeps; Content-Encoding is apart. */
static const char *const kept[] = {
    "Content-Type", "Cache-Control", "Content-Disposition", "Content-Language", "Expires",
};

enum { KEPT = sizeof kept / sizeof kept[0] };

static bool is_kept(const char *name)
{
    for (size_t i = 0; i < KEPT; i++) {
        if (strcasecmp(name, kept[i]) == 0)
            return true;
    }
    return false;
}

/* The body's coding in chunks ends here. */
static void put_encoding(const char *value, struct buf *out)
{
    static const char chunked[] = "aws-chunked";
    const char *separator = "";
    for (const char *at = value; *at != '\0';) {
        size_t len = strcspn(at, ", \t");
        if (len > 0 && (len != strlen(chunked) || strncasecmp(at, chunked, len) != 0)) {
            buf_printf(out, "%s%.*s", separator, (int)len, at);
            separator = ", ";
        }
        at += len;
        at += strspn(at, ", \t");
    }
}

static void add_encoding(struct native_head *h, const char *value)
{
    _cleanup_buf_ struct buf left = BUF_INIT;
    put_encoding(value, &left);
    if (left.len > 0)
        native_head_add(h, "Content-Encoding", buf_str(&left));
}

static enum s3_error add_meta(struct native_head *h, const struct gateway_call *call,
                              struct s3_failure *why)
{
    size_t prefix = strlen(S3_META), bytes = 0;
    for (size_t i = 0; i < call->head.header_count; i++) {
        const struct s3_field *f = &call->head.headers[i];
        if (strncasecmp(f->name, S3_META, prefix) != 0)
            continue;
        bytes += strlen(f->name) - prefix + strlen(f->value);
        if (bytes > META_BYTES_MAX)
            return s3_fail(why, S3_METADATA_TOO_LARGE, NULL);
        native_head_add(h, arena_printf(h->arena, NATIVE_META "%s", f->name + prefix), f->value);
    }
    return S3_OK;
}

enum s3_error native_head_check_version(const struct gateway_call *call, struct s3_failure *why)
{
    const char *version = s3_query_get(&call->s3.query, "versionId");
    if (version != NULL && strcmp(version, "null") != 0)
        return s3_fail(why, S3_INVALID_ARGUMENT, "The only version of an object is 'null'");
    return S3_OK;
}

enum s3_error native_head_content(struct native_head *h, const struct gateway_call *call,
                                  struct s3_failure *why)
{
    for (size_t i = 0; i < KEPT; i++) {
        const char *value = s3_header(&call->head, kept[i]);
        if (value != NULL)
            native_head_add(h, kept[i], value);
    }
    const char *encoding = s3_header(&call->head, "Content-Encoding");
    if (encoding != NULL)
        add_encoding(h, encoding);
    return add_meta(h, call, why);
}

/* What the backend of its bucket has said of an object, which no other object may have.
 * Clients of S3 do not see it: they would copy it into metadata of another. */
static bool is_of_backend(const char *meta)
{
    return strcasecmp(meta, "backend-etag") == 0 || strcasecmp(meta, "backend-modified") == 0 ||
           strcasecmp(meta, "backend-sent") == 0;
}

static bool is_content(const char *name)
{
    size_t prefix = strlen(NATIVE_META);
    if (strncasecmp(name, NATIVE_META, prefix) == 0)
        return !is_of_backend(name + prefix);
    return is_kept(name) || strcasecmp(name, "Content-Encoding") == 0;
}

void native_head_content_of(struct native_head *h, const struct target_call_header *headers)
{
    for (; headers != NULL; headers = headers->next) {
        if (is_content(headers->name))
            native_head_add(h, headers->name, headers->value);
    }
}

/* --- the reply -------------------------------------------------------------------------------- */

void native_head_put_etag(const struct target_call_header *headers, struct buf *out)
{
    const char *native = target_call_header(headers, "ETag");
    const char *md5 = target_call_header(headers, "Dfc-Md5");
    if (native != NULL && md5 != NULL)
        buf_printf(out, "\"%s\"", md5);
    else if (native != NULL)
        etag_put_s3(native, out);
}

const char *native_head_bare_etag(const struct target_call_header *headers, struct arena *arena)
{
    _cleanup_buf_ struct buf tag = BUF_INIT;
    native_head_put_etag(headers, &tag);
    char *text = arena_strdup(arena, buf_str(&tag));
    if (tag.len < 2 || text[0] != '"' || text[tag.len - 1] != '"')
        return text;
    text[tag.len - 1] = '\0';
    return text + 1;
}

void native_head_add_sum(struct native_head *h, const struct s3_sum_text *sum)
{
    char text[S3_SUM_TEXT_MAX];
    native_head_add(h, NATIVE_SUM, s3_sum_text_print(sum, text));
}

bool native_head_sum(const struct target_call_header *headers, struct s3_object_sum *out)
{
    const char *text = target_call_header(headers, NATIVE_SUM);
    return text != NULL && s3_object_sum_parse(text, out);
}

bool native_head_part_sums(const struct target_call_header *headers, struct part_sums *out)
{
    const char *text = target_call_header(headers, NATIVE_PART_SUMS);
    return text != NULL && part_sums_parse(text, out);
}

bool native_head_wants_sum(const struct gateway_call *call)
{
    const char *mode = s3_header(&call->head, "x-amz-checksum-mode");
    return mode != NULL && strcasecmp(mode, "ENABLED") == 0;
}

void native_head_reply_sum(struct http_request *req, const struct target_call_header *headers)
{
    struct s3_object_sum sum;
    char text[S3_OBJECT_SUM_VALUE_MAX];
    if (!native_head_sum(headers, &sum))
        return;
    http_reply_header(req, s3_sum_header(sum.value.type), s3_object_sum_value(&sum, text));
    http_reply_header(req, "x-amz-checksum-type", s3_object_sum_type(&sum));
}

/* Sizes of other bytes, which another client of a backend may have stored, are of no use. */
const char *native_head_parts(const struct target_call_header *headers, int64_t length,
                              struct part_sizes *out)
{
    const char *text = target_call_header(headers, NATIVE_PARTS);
    bool is_right = text != NULL && length >= 0 && part_sizes_parse(text, out) &&
                    out->total == (uint64_t)length;
    return is_right ? text : NULL;
}

/* The query may replace these headers of the reply. */
static const struct {
    const char *parameter, *header;
} overrides[] = {
    {"response-content-type", "Content-Type"},
    {"response-content-encoding", "Content-Encoding"},
    {"response-content-language", "Content-Language"},
    {"response-content-disposition", "Content-Disposition"},
    {"response-cache-control", "Cache-Control"},
    {"response-expires", "Expires"},
};

enum { OVERRIDES = sizeof overrides / sizeof overrides[0] };

const char *native_head_replaced(const struct gateway_call *call)
{
    for (size_t i = 0; i < OVERRIDES; i++) {
        if (s3_query_get(&call->s3.query, overrides[i].parameter) != NULL)
            return overrides[i].parameter;
    }
    return NULL;
}

static bool is_overridden(const struct gateway_call *call, const char *header)
{
    for (size_t i = 0; i < OVERRIDES; i++) {
        if (strcasecmp(overrides[i].header, header) == 0)
            return s3_query_get(&call->s3.query, overrides[i].parameter) != NULL;
    }
    return false;
}

static void reply_overrides(struct http_request *req, const struct gateway_call *call)
{
    for (size_t i = 0; i < OVERRIDES; i++) {
        const char *value = s3_query_get(&call->s3.query, overrides[i].parameter);
        if (value != NULL)
            http_reply_header(req, overrides[i].header, value);
    }
}

static bool passes(const char *name)
{
    static const char *const names[] = {
        "Accept-Ranges", "Content-Encoding",        "Content-Range",
        "Last-Modified", "Content-Security-Policy", "X-Content-Type-Options",
    };
    if (is_kept(name))
        return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

void native_head_reply(struct http_request *req, const struct gateway_call *call,
                       const struct target_call_header *headers)
{
    _cleanup_buf_ struct buf tag = BUF_INIT;
    size_t prefix = strlen(NATIVE_META);
    for (const struct target_call_header *h = headers; h != NULL; h = h->next) {
        if (strncasecmp(h->name, NATIVE_META, prefix) == 0 && !is_of_backend(h->name + prefix))
            http_reply_header(req, arena_printf(http_arena(req), S3_META "%s", h->name + prefix),
                              h->value);
        else if (passes(h->name) && !is_overridden(call, h->name))
            http_reply_header(req, h->name, h->value);
    }
    reply_overrides(req, call);
    native_head_put_etag(headers, &tag);
    if (tag.len > 0)
        http_reply_header(req, "ETag", buf_str(&tag));
}
