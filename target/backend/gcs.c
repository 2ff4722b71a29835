/* Google Cloud Storage by its own JSON API: objects, lists, and uploads by resumable sessions
 * (upload_session.h).  Whoever asks is let in by a token (google_token.h), or asks for what is
 * public.
 *
 *   GET, HEAD  /storage/v1/b/BUCKET/o/OBJECT?alt=media[&ifGenerationMatch=N]
 *   GET        /storage/v1/b/BUCKET/o?prefix=…&startOffset=…       a list
 *   POST       /upload/storage/v1/b/BUCKET/o?uploadType=resumable  a session: its URL, to PUT to
 *   POST       /storage/v1/b/BUCKET/o/OBJECT/rewriteTo/b/BUCKET/o/NEW[?rewriteToken=…]   a step of
 * a copy
 *
 * The version of an object is its generation, a number that only grows: that is the entity tag here
 * ("1700000000000001"), and conditions go out as those on generations.  User metadata is part of
 * what begins a session, and comes in headers (x-goog-meta-*) with the bytes.  Bytes are asked for
 * as they are stored: an object in gzip stays so, since what the service unpacks has neither the
 * length nor the checksum that it tells of. */
#include "target/backend/backend.h"

#include <string.h>

#include "common/jsonx.h"
#include "common/parse.h"
#include "target/backend/meta.h"

#define API "/storage/v1"

enum { HEADERS_MAX = 10, LIST_PAGE_MAX = 1000, WORDS_MAX = 256, GENERATION_MAX = 20 };

/* --- generations ------------------------------------------------------------------------------ */

/* "\"123\"" of a tag is 123; false: it is no generation. */
static bool generation_of(const char *tag, char out[static GENERATION_MAX + 1])
{
    size_t len = strlen(tag);
    if (len < 3 || len > GENERATION_MAX + 2 || tag[0] != '"' || tag[len - 1] != '"' ||
        strspn(tag + 1, "0123456789") != len - 2)
        return false;
    memcpy(out, tag + 1, len - 2);
    out[len - 2] = '\0';
    return true;
}

static void put_tag(const char *generation, char out[static BACKEND_ETAG_MAX])
{
    size_t len = strlen(generation);
    bool is_one = len > 0 && len <= GENERATION_MAX && strspn(generation, "0123456789") == len;
    *out = '\0';
    if (is_one)
        snprintf(out, BACKEND_ETAG_MAX, "\"%s\"", generation);
}

/* --- URLs ------------------------------------------------------------------------------------- */

static void put_pair(struct buf *url, const char *name, const char *prefix, const char *value)
{
    buf_printf(url, "%c%s=", strchr(buf_str(url), '?') != NULL ? '&' : '?', name);
    buf_put_url_escaped(url, prefix, strlen(prefix), "");
    buf_put_url_escaped(url, value, strlen(value), "");
}

static void put_bucket(struct buf *url, const struct backend_spec *spec, const char *api)
{
    buf_printf(url, "%s%s/b/", spec->endpoint, api);
    buf_put_url_escaped(url, spec->bucket, strlen(spec->bucket), "");
    buf_puts(url, "/o");
}

static void put_object(struct buf *url, const struct backend_spec *spec, const char *name)
{
    put_bucket(url, spec, API);
    buf_putc(url, '/');
    buf_put_url_escaped(url, spec->prefix, strlen(spec->prefix), "");
    buf_put_url_escaped(url, name, strlen(name), "");
}

/* What cannot be a generation is no object's; and whether an object is not of that one is then
 * no question. */
static int put_read(struct buf *url, const struct backend_spec *spec, const struct backend_ask *ask,
                    struct error *err)
{
    char generation[GENERATION_MAX + 1];
    put_object(url, spec, ask->name);
    put_pair(url, "alt", "", "media");
    if (ask->if_match != NULL && !generation_of(ask->if_match, generation))
        return error_set(err, E_PRECONDITION, "the object has another entity tag");
    if (ask->if_match != NULL)
        put_pair(url, "ifGenerationMatch", "", generation);
    if (ask->if_none_match != NULL && generation_of(ask->if_none_match, generation))
        put_pair(url, "ifGenerationNotMatch", "", generation);
    return 0;
}

/* startOffset is the first name, not the one before it: who asks leaves out what it has had. */
static void put_list(struct buf *url, const struct backend_spec *spec,
                     const struct backend_list_ask *list)
{
    char limit[24];
    snprintf(limit, sizeof limit, "%zu", list->limit < LIST_PAGE_MAX ? list->limit : LIST_PAGE_MAX);
    put_bucket(url, spec, API);
    put_pair(url, "maxResults", "", limit);
    put_pair(url, "fields", "", "items(name,size,generation,updated),prefixes,nextPageToken");
    if (*spec->prefix != '\0' || *list->prefix != '\0')
        put_pair(url, "prefix", spec->prefix, list->prefix);
    if (*list->delimiter != '\0')
        put_pair(url, "delimiter", "", list->delimiter);
    if (*list->start_after != '\0')
        put_pair(url, "startOffset", spec->prefix, list->start_after);
    if (list->token != NULL)
        put_pair(url, "pageToken", "", list->token);
}

static int put_rewrite(struct buf *url, const struct backend_spec *spec,
                       const struct backend_ask *ask, struct error *err)
{
    char generation[GENERATION_MAX + 1];
    _cleanup_buf_ struct buf to = BUF_INIT;
    if (!generation_of(ask->write->from_etag, generation))
        return error_set(err, E_PRECONDITION, "the object has another entity tag");
    put_object(&to, spec, ask->name);
    put_object(url, spec, ask->write->from);
    buf_printf(url, "/rewriteTo%s", buf_str(&to) + strlen(spec->endpoint) + strlen(API));
    put_pair(url, "ifSourceGenerationMatch", "", generation);
    if (ask->write->token != NULL)
        put_pair(url, "rewriteToken", "", ask->write->token);
    return 0;
}

static int put_url(struct buf *url, const struct backend_spec *spec, const struct backend_ask *ask,
                   struct error *err)
{
    switch (ask->verb) {
    case BACKEND_READ:
        return put_read(url, spec, ask, err);
    case BACKEND_LIST:
        put_list(url, spec, ask->list);
        return 0;
    case BACKEND_REWRITE:
        return put_rewrite(url, spec, ask, err);
    case BACKEND_SESSION_BEGIN:
        put_bucket(url, spec, "/upload/storage/v1");
        put_pair(url, "uploadType", "", "resumable");
        return 0;
    case BACKEND_SESSION_SEND:
    case BACKEND_SESSION_ABORT:
        buf_puts(url, ask->url);
        return 0;
    default:
        put_object(url, spec, ask->name);
        return 0;
    }
}

/* --- requests --------------------------------------------------------------------------------- */

static void put_meta(json_t *doc, const struct backend_write *w)
{
    size_t pos = 0;
    const char *name, *value;
    _cleanup_json_ json_t *meta = json_object();
    while (backend_meta_next(w->meta, w->meta_len, &pos, &name, &value))
        json_object_set_new(meta, name, json_string(value));
    if (json_object_size(meta) > 0)
        json_object_set(doc, "metadata", meta);
}

/* What the object is to be; the service compares the MD5 when all is there. */
static const char *session_body(const struct backend_spec *spec, const struct backend_ask *ask,
                                struct arena *a)
{
    char md5[BACKEND_DIGEST_MAX];
    const struct backend_write *w = ask->write;
    _cleanup_json_ json_t *doc =
        json_pack("{s:s, s:s}", "name", arena_printf(a, "%s%s", spec->prefix, ask->name), "md5Hash",
                  backend_format_digest(&w->md5, md5));
    if (w->content_type != NULL)
        json_object_set_new(doc, "contentType", json_string_escaped(w->content_type));
    const char *encoding = backend_meta_encoding(w->meta, w->meta_len);
    if (encoding != NULL)
        json_object_set_new(doc, "contentEncoding", json_string(encoding));
    put_meta(doc, w);
    _cleanup_free_ char *text = json_text(doc);
    return arena_strdup(a, text);
}

static size_t put_lines(const struct backend_spec *spec, const struct backend_ask *ask,
                        struct arena *a, const char **out)
{
    size_t n = 0;
    bool in_session = ask->verb == BACKEND_SESSION_SEND || ask->verb == BACKEND_SESSION_ABORT;
    out[n++] = ask->verb == BACKEND_READ ? "accept-encoding: gzip" : "accept-encoding: identity";
    if (ask->token != NULL && spec->is_signed &&
        !in_session) /* a session's URL lets in by itself */
        out[n++] = arena_printf(a, "authorization: Bearer %s", ask->token);
    if (ask->range != NULL)
        out[n++] = arena_printf(a, "range: %s", ask->range);
    if (ask->verb == BACKEND_SESSION_BEGIN) {
        out[n++] = "content-type: application/json; charset=UTF-8";
        out[n++] =
            arena_printf(a, "x-upload-content-length: %llu", (unsigned long long)ask->write->size);
    }
    if (ask->verb == BACKEND_SESSION_SEND)
        out[n++] = arena_printf(a, "content-range: %s", ask->write->content_range);
    return n;
}

/* The service takes neither as a name, and a path may lose them on the way. */
static bool is_no_name(const struct backend_spec *spec, const char *name)
{
    return *spec->prefix == '\0' && (strcmp(name, ".") == 0 || strcmp(name, "..") == 0);
}

static int gcs_request(const struct backend_spec *spec, const struct backend_ask *ask,
                       struct arena *a, struct backend_request *out, struct error *err)
{
    _cleanup_buf_ struct buf url = BUF_INIT;
    const char **lines = arena_alloc(a, HEADERS_MAX * sizeof *lines);
    if (is_no_name(spec, ask->name))
        return error_set(err, E_OBJECT_NOT_FOUND,
                         "object '%s' does not exist: GCS has no such name", ask->name);
    int code = put_url(&url, spec, ask, err);
    if (code != 0)
        return code;
    put_lines(spec, ask, a, lines);
    *out = (struct backend_request){
        .url = arena_strdup(a, buf_str(&url)),
        .headers = lines,
        .body = ask->verb == BACKEND_SESSION_BEGIN ? session_body(spec, ask, a) : NULL};
    return 0;
}

/* --- heads ------------------------------------------------------------------------------------ */

/* "crc32c=…" of a header that may come several times, or with commas: the first that is known. */
static void gcs_sum(const struct http_head *head, struct checksum_value *out)
{
    static const struct {
        const char *name;
        enum checksum_type type;
    } kinds[] = {{"crc32c=", CHECKSUM_CRC32C}, {"md5=", CHECKSUM_MD5}};
    const char *text = head->header(head, "x-goog-hash"), *at;
    const char *stored = head->header(head, "x-goog-stored-content-encoding");
    bool unpacked = stored != NULL && strcmp(stored, "gzip") == 0 &&
                    head->header(head, "Content-Encoding") == NULL;
    *out = (struct checksum_value){.type = CHECKSUM_NONE};
    for (size_t i = 0; text != NULL && !unpacked && i < sizeof kinds / sizeof kinds[0]; i++) {
        char value[BACKEND_DIGEST_MAX];
        if ((at = strstr(text, kinds[i].name)) == NULL)
            continue;
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at + strlen(kinds[i].name), ", "),
                 at + strlen(kinds[i].name));
        if (checksum_parse_base64(kinds[i].type, value, out))
            return;
        *out = (struct checksum_value){.type = CHECKSUM_NONE};
    }
}

/* Of a session that has not all yet, Range is what it has: "bytes=0-99"; without it, nothing. */
static void gcs_facts(const struct http_head *head, struct backend_facts *out)
{
    const char *generation = head->header(head, "x-goog-generation");
    const char *range = head->header(head, "Range");
    uint64_t last;
    put_tag(generation != NULL ? generation : "", out->etag);
    if (out->status == 308 && range != NULL && strncmp(range, "bytes=0-", 8) == 0 &&
        parse_u64(range + 8, &last, NULL) == 0 && last < INT64_MAX)
        out->offset = last + 1;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void put_printable(struct buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len && out->len < WORDS_MAX; i++) {
        if (text[i] >= ' ' && text[i] <= '~')
            buf_putc(out, text[i]);
    }
}

/* {"error": {"message": "…"}}, or, of an object's bytes, plain text. */
static void gcs_words(const char *body, size_t len, struct buf *out)
{
    static const char no_bucket[] = "The specified bucket does not exist";
    _cleanup_json_ json_t *doc = NULL;
    json_t *error = NULL;
    const char *message = NULL;
    if (json_parse(body, len, &doc, NULL) == 0) {
        if (json_get_object(doc, "", "error", &error, NULL) != 0 || error == NULL ||
            json_get_str(error, "error", "message", &message, NULL) != 0 || message == NULL)
            return;
        body = message;
        len = strlen(message);
    }
    if (len >= sizeof no_bucket - 1 && memcmp(body, no_bucket, sizeof no_bucket - 1) == 0)
        buf_puts(out, "NoSuchBucket: ");
    put_printable(out, body, len);
}

static int gcs_etag(const char *body, size_t len, struct buf *out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *generation = "";
    char tag[BACKEND_ETAG_MAX];
    if (json_parse(body, len, &doc, NULL) != 0 ||
        json_need_str(doc, "", "generation", &generation, NULL) != 0)
        return error_set(err, E_BACKEND, "the backend's answer is no object of GCS");
    put_tag(generation, tag);
    buf_puts(out, tag);
    return 0;
}

/* {"done": false, "rewriteToken": "…"}: there are more steps. */
static int gcs_copied(const char *body, size_t len, struct buf *out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    bool done = false;
    const char *token = "";
    if (json_parse(body, len, &doc, NULL) != 0 || !json_is_object(doc) ||
        json_get_bool(doc, "", "done", &done, NULL) != 0 ||
        json_get_str(doc, "", "rewriteToken", &token, NULL) != 0 || (!done && *token == '\0'))
        return error_set(err, E_BACKEND, "the backend's answer is none to a copy");
    if (!done)
        buf_puts(out, token);
    return 0;
}

static const char *without_prefix(const struct backend_spec *spec, const char *key)
{
    size_t len = strlen(spec->prefix);
    return strncmp(key, spec->prefix, len) == 0 ? key + len : NULL;
}

static bool read_item(const struct backend_spec *spec, json_t *item, struct backend_page *out)
{
    const char *key, *size, *generation = "", *updated = "";
    char tag[BACKEND_ETAG_MAX];
    struct backend_entry e;
    if (json_need_str(item, "", "name", &key, NULL) != 0 ||
        json_need_str(item, "", "size", &size, NULL) != 0 ||
        json_get_str(item, "", "generation", &generation, NULL) != 0 ||
        json_get_str(item, "", "updated", &updated, NULL) != 0 ||
        parse_u64(size, &e.size, NULL) != 0 || e.size > INT64_MAX)
        return false;
    put_tag(generation, tag);
    e.name = without_prefix(spec, key);
    e.etag = tag;
    e.modified_ms = backend_parse_time_ms(updated);
    if (e.name != NULL)
        backend_page_add_entry(out, &e);
    return true;
}

static bool read_prefix(const struct backend_spec *spec, json_t *text, struct backend_page *out)
{
    const char *name = json_is_string(text) ? without_prefix(spec, json_string_value(text)) : NULL;
    if (name != NULL)
        backend_page_add_prefix(out, name);
    return json_is_string(text);
}

static bool read_each(const struct backend_spec *spec, json_t *doc, const char *field,
                      bool (*read)(const struct backend_spec *, json_t *, struct backend_page *),
                      struct backend_page *out)
{
    json_t *list = NULL, *item;
    size_t i;
    if (json_get_array(doc, "", field, &list, NULL) != 0)
        return false;
    json_array_foreach(list, i, item)
    {
        if (!read(spec, item, out))
            return false;
    }
    return true;
}

static int gcs_page(const struct backend_spec *spec, const char *body, size_t len,
                    struct backend_page *out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *token = NULL;
    if (json_parse(body, len, &doc, NULL) != 0 || !json_is_object(doc) ||
        !read_each(spec, doc, "items", read_item, out) ||
        !read_each(spec, doc, "prefixes", read_prefix, out) ||
        json_get_str(doc, "", "nextPageToken", &token, NULL) != 0)
        return error_set(err, E_BACKEND, "the backend's answer is no list of a bucket");
    out->token = token != NULL ? arena_strdup(out->arena, token) : NULL;
    return 0;
}

const struct backend_ops backend_gcs = {
    .provider = "gcs",
    .verbs = BACKEND_VERB(BACKEND_DELETE) | BACKEND_SESSIONS | BACKEND_VERB(BACKEND_REWRITE) |
             BACKEND_VERB(BACKEND_LIST),
    .bears_token = true,
    .request = gcs_request,
    .sum = gcs_sum,
    .facts = gcs_facts,
    .words = gcs_words,
    .end_etag = gcs_etag,
    .copied = gcs_copied,
    .page = gcs_page,
    .meta_prefix = "x-goog-meta-",
    .takes_meta = true,
};
