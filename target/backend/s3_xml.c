#include "target/backend/s3_xml.h"

#include <stdbool.h>
#include <string.h>

#include "common/parse.h"
#include "s3/xml.h"
#include "s3/xml_write.h"

enum { WORDS_MAX = 256, DEPTH = 3 };

/* --- errors ----------------------------------------------------------------------------------- */

struct words {
    struct buf code, message;
};

static void put_printable(struct buf *out, const char *text)
{
    for (; *text != '\0' && out->len < WORDS_MAX; text++) {
        if (*text >= ' ' && *text <= '~')
            buf_putc(out, *text);
    }
}

static void error_leaf(void *ctx, const char *in, const char *name, const char *text)
{
    struct words *w = ctx;
    if (strcmp(in, "Error") == 0 && strcmp(name, "Code") == 0)
        put_printable(&w->code, text);
    if (strcmp(in, "Error") == 0 && strcmp(name, "Message") == 0)
        put_printable(&w->message, text);
}

void s3_xml_error(const char *body, size_t len, struct buf *out)
{
    struct words w = {.code = BUF_INIT};
    const struct xml_reader r = {.root = "Error", .depth = DEPTH, .leaf = error_leaf, .ctx = &w};
    (void)xml_read(&r, body, len);
    buf_printf(out, "%s%s%s", buf_str(&w.code), w.code.len > 0 && w.message.len > 0 ? ": " : "",
               w.code.len > 0 ? buf_str(&w.message) : "");
    buf_done(&w.code);
    buf_done(&w.message);
}

/* --- objects in parts ------------------------------------------------------------------------- */

struct wanted_leaf {
    const char *name;
    struct buf *out;
};

static void wanted_leaf(void *ctx, const char *in, const char *name, const char *text)
{
    struct wanted_leaf *w = ctx;
    (void)in;
    if (strcmp(name, w->name) == 0 && w->out->len == 0)
        buf_puts(w->out, text);
}

static int read_wanted(const char *root, const char *name, const char *body, size_t len,
                       struct buf *out, struct error *err)
{
    struct wanted_leaf w = {.name = name, .out = out};
    const struct xml_reader r = {.root = root, .depth = DEPTH, .leaf = wanted_leaf, .ctx = &w};
    if (xml_read(&r, body, len))
        return 0;
    _cleanup_buf_ struct buf words = BUF_INIT;
    s3_xml_error(body, len, &words);
    return error_set(err, E_BACKEND, "the backend's answer is no %s%s%s", root,
                     words.len > 0 ? ": " : "", buf_str(&words));
}

int s3_xml_upload_id(const char *body, size_t len, struct buf *out, struct error *err)
{
    int code = read_wanted("InitiateMultipartUploadResult", "UploadId", body, len, out, err);
    if (code == 0 && out->len == 0)
        code = error_set(err, E_BACKEND, "the backend gave the upload no id");
    return code;
}

int s3_xml_parts_etag(const char *body, size_t len, struct buf *out, struct error *err)
{
    return read_wanted("CompleteMultipartUploadResult", "ETag", body, len, out, err);
}

int s3_xml_copy_etag(const char *body, size_t len, struct buf *out, struct error *err)
{
    if (read_wanted("CopyPartResult", "ETag", body, len, out, NULL) == 0)
        return 0;
    return read_wanted("CopyObjectResult", "ETag", body, len, out, err);
}

const char *s3_xml_parts(const struct backend_write *write, struct arena *a)
{
    _cleanup_buf_ struct buf out = BUF_INIT;
    buf_puts(&out, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (size_t i = 0; i < write->part_count; i++) {
        buf_printf(&out, "<Part><PartNumber>%zu</PartNumber><ETag>", i + 1);
        xml_put_text(&out, write->parts[i].etag);
        buf_puts(&out, "</ETag></Part>");
    }
    buf_puts(&out, "</CompleteMultipartUpload>");
    return arena_strdup(a, buf_str(&out));
}

/* --- lists ------------------------------------------------------------------------------------ */

struct list_read {
    const struct backend_spec *spec;
    struct backend_page *page;
    struct backend_entry entry; /* the one that is being read; its texts are the arena's */
    bool has_size, is_truncated, is_damaged;
};

/* "a%20b" and "a+b" are "a b": both are found.  NULL where it is no name. */
static const char *decode_key(struct list_read *l, const char *text)
{
    size_t len = strlen(text), prefix = strlen(l->spec->prefix);
    char *spaced = arena_strndup(l->page->arena, text, len);
    char *key = arena_bytes(l->page->arena, len + 1);
    for (char *at = spaced; *at != '\0'; at++) {
        if (*at == '+')
            *at = ' ';
    }
    if (parse_url_unescape(spaced, len, key, NULL) < 0)
        return NULL;
    return strncmp(key, l->spec->prefix, prefix) == 0 ? key + prefix : NULL;
}

static void entry_leaf(struct list_read *l, const char *name, const char *text)
{
    if (strcmp(name, "Key") == 0)
        l->entry.name = decode_key(l, text);
    else if (strcmp(name, "ETag") == 0 && strlen(text) < BACKEND_ETAG_MAX)
        l->entry.etag = arena_strdup(l->page->arena, text);
    else if (strcmp(name, "LastModified") == 0)
        l->entry.modified_ms = backend_parse_time_ms(text);
    else if (strcmp(name, "Size") == 0)
        l->has_size = parse_u64(text, &l->entry.size, NULL) == 0 && l->entry.size <= INT64_MAX;
}

static void list_leaf(void *ctx, const char *in, const char *name, const char *text)
{
    struct list_read *l = ctx;
    if (strcmp(in, "Contents") == 0)
        entry_leaf(l, name, text);
    else if (strcmp(in, "CommonPrefixes") == 0 && strcmp(name, "Prefix") == 0)
        l->entry.name = decode_key(l, text);
    else if (strcmp(in, "ListBucketResult") == 0 && strcmp(name, "IsTruncated") == 0)
        l->is_truncated = strcmp(text, "true") == 0;
    else if (strcmp(in, "ListBucketResult") == 0 && strcmp(name, "NextContinuationToken") == 0)
        l->page->token = arena_strdup(l->page->arena, text);
}

static void list_leave(void *ctx, const char *name)
{
    struct list_read *l = ctx;
    bool is_entry = strcmp(name, "Contents") == 0;
    if (is_entry && l->entry.name != NULL && l->has_size)
        backend_page_add_entry(l->page, &l->entry);
    else if (is_entry && !l->has_size)
        l->is_damaged = true;
    else if (strcmp(name, "CommonPrefixes") == 0 && l->entry.name != NULL)
        backend_page_add_prefix(l->page, l->entry.name);
    l->entry = (struct backend_entry){.etag = ""};
    l->has_size = false;
}

int s3_xml_page(const struct backend_spec *spec, const char *body, size_t len,
                struct backend_page *out, struct error *err)
{
    struct list_read l = {.spec = spec, .page = out, .entry = {.etag = ""}};
    const struct xml_reader r = {.root = "ListBucketResult",
                                 .depth = DEPTH,
                                 .leaf = list_leaf,
                                 .leave = list_leave,
                                 .ctx = &l};
    if (!xml_read(&r, body, len) || l.is_damaged)
        return error_set(err, E_BACKEND, "the backend's answer is no list of a bucket");
    if (l.is_truncated && out->token == NULL)
        return error_set(err, E_BACKEND,
                         "the backend's list is cut and lacks the token for its next part");
    if (!l.is_truncated)
        out->token = NULL;
    return 0;
}
