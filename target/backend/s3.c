/* S3 and what speaks it: objects, objects in parts ("Multipart upload") and lists (ListObjectsV2),
 * signed by Signature Version 4 (or not, for public buckets), path style or virtual-host style.
 *
 * The bytes of an object are not part of the signature, which would have to be made before the
 * first of them is sent: their MD5 is, and the service compares it. */
#include "target/backend/backend.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include "s3/sigv4.h"
#include "target/backend/aws_keys.h"
#include "target/backend/meta.h"
#include "target/backend/s3_xml.h"
#include "target/store/own_meta.h"

#define META_PREFIX "x-amz-meta-"

/* Beside those of user metadata. */
enum { HEADERS_MAX = 12, SIGNED_MAX = 8, SHA256_BYTES = 32, LIST_PAGE_MAX = 1000 };

/* --- where ------------------------------------------------------------------------------------ */

struct place {
    const char *scheme; /* "https://" */
    const char *host;   /* as the header Host has it */
    const char *path;   /* encoded, with the key */
    const char *query;  /* encoded, in the order of names; "" for none */
};

/* The port that the scheme means anyway is not sent. */
static const char *host_header(struct arena *a, const char *scheme, const char *host, size_t len)
{
    const char *port = strcmp(scheme, "http://") == 0 ? ":80" : ":443";
    size_t port_len = strlen(port);
    if (len > port_len && memcmp(host + len - port_len, port, port_len) == 0)
        len -= port_len;
    return arena_strndup(a, host, len);
}

/* --- the query, in the order of names, as the signature wants it */

static void put_pair(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "%s%s=", out->len > 0 ? "&" : "", name);
    buf_put_url_escaped(out, value, strlen(value), "");
}

static void put_text_pair(struct buf *out, const char *name, const char *value)
{
    if (*value != '\0')
        put_pair(out, name, value);
}

/* A name here is the key without the prefix. */
static void put_key_pair(struct buf *out, const char *name, const char *prefix, const char *value)
{
    _cleanup_buf_ struct buf key = BUF_INIT;
    buf_printf(&key, "%s%s", prefix, value);
    put_text_pair(out, name, buf_str(&key));
}

static void put_list_query(struct buf *out, const struct backend_spec *spec,
                           const struct backend_list_ask *list)
{
    char limit[24];
    snprintf(limit, sizeof limit, "%zu", list->limit < LIST_PAGE_MAX ? list->limit : LIST_PAGE_MAX);
    put_text_pair(out, "continuation-token", list->token != NULL ? list->token : "");
    put_text_pair(out, "delimiter", list->delimiter);
    put_pair(out, "encoding-type", "url");
    put_pair(out, "list-type", "2");
    put_pair(out, "max-keys", limit);
    put_key_pair(out, "prefix", spec->prefix, list->prefix);
    if (*list->start_after != '\0')
        put_key_pair(out, "start-after", spec->prefix, list->start_after);
}

static const char *find_query(const struct backend_spec *spec, const struct backend_ask *ask,
                              struct arena *a)
{
    _cleanup_buf_ struct buf query = BUF_INIT;
    char part[16];
    if (ask->verb == BACKEND_LIST)
        put_list_query(&query, spec, ask->list);
    if (ask->verb == BACKEND_PARTS_BEGIN)
        put_pair(&query, "uploads", "");
    if (ask->verb == BACKEND_PART || ask->verb == BACKEND_PART_COPY) {
        snprintf(part, sizeof part, "%u", ask->write->part);
        put_pair(&query, "partNumber", part);
    }
    if (ask->verb == BACKEND_PART || ask->verb == BACKEND_PART_COPY ||
        ask->verb == BACKEND_PARTS_END || ask->verb == BACKEND_PARTS_ABORT)
        put_pair(&query, "uploadId", ask->write->upload_id);
    return arena_strdup(a, buf_str(&query));
}

/* A list is of the bucket, whatever prefix it asks for. */
static struct place find_place(const struct backend_spec *spec, const struct backend_ask *ask,
                               struct arena *a)
{
    struct place p = {.scheme = strncmp(spec->endpoint, "https", 5) == 0 ? "https://" : "http://",
                      .query = find_query(spec, ask, a)};
    const char *host = spec->endpoint + strlen(p.scheme);
    size_t host_len = strcspn(host, "/");
    _cleanup_buf_ struct buf path = BUF_INIT;
    buf_puts(&path, host + host_len);
    p.host = host_header(a, p.scheme, host, host_len);
    if (spec->path_style)
        buf_printf(&path, "/%s", spec->bucket);
    else
        p.host = arena_printf(a, "%s.%s", spec->bucket, p.host);
    buf_putc(&path, '/');
    if (ask->verb != BACKEND_LIST) {
        buf_put_url_escaped(&path, spec->prefix, strlen(spec->prefix), "/");
        buf_put_url_escaped(&path, ask->name, strlen(ask->name), "/");
    }
    p.path = arena_strdup(a, buf_str(&path));
    return p;
}

/* --- headers ---------------------------------------------------------------------------------- */

struct headers {
    struct arena *arena;
    struct sigv4_header *named; /* the signed ones, in order */
    size_t named_count;
    const char **lines;
    size_t count;
};

static void add_line(struct headers *h, const char *name, const char *value)
{
    h->lines[h->count++] = arena_printf(h->arena, "%s: %s", name, value);
}

static void add_signed(struct headers *h, const char *name, const char *value)
{
    h->named[h->named_count++] = (struct sigv4_header){name, value};
    add_line(h, name, value);
}

static void sign(const struct backend_spec *spec, const struct backend_ask *ask,
                 const struct place *place, const struct aws_keys *keys, const char *time,
                 const char *payload, struct headers *h)
{
    _cleanup_buf_ struct buf authorization = BUF_INIT;
    const struct sigv4_keys k = {.access = keys->access, .secret = keys->secret};
    const struct sigv4_request r = {.method = http_method_name(backend_method(ask)),
                                    .path = place->path,
                                    .query = place->query,
                                    .headers = h->named,
                                    .header_count = h->named_count,
                                    .payload_sha256 = payload,
                                    .time = time,
                                    .region = spec->region,
                                    .service = "s3"};
    sigv4_authorization(&r, &k, &authorization);
    add_line(h, "authorization", buf_str(&authorization));
}

/* What the signature says of the body. */
static const char *payload_of(const struct backend_ask *ask, const char *body, struct arena *a)
{
    unsigned char digest[SHA256_BYTES];
    if (ask->verb == BACKEND_PUT || ask->verb == BACKEND_PART)
        return "UNSIGNED-PAYLOAD";
    if (body == NULL)
        return SIGV4_EMPTY_SHA256;
    EVP_Digest(body, strlen(body), digest, NULL, EVP_sha256(), NULL);
    char *hex = arena_bytes(a, 2 * sizeof digest + 1);
    format_hex(digest, sizeof digest, hex);
    return hex;
}

static bool is_begun(const struct backend_ask *ask)
{
    return ask->verb == BACKEND_PUT || ask->verb == BACKEND_PARTS_BEGIN;
}

static size_t count_meta(const struct backend_ask *ask)
{
    size_t pos = 0, n = 0;
    const char *name, *value;
    while (is_begun(ask) &&
           backend_meta_next(ask->write->meta, ask->write->meta_len, &pos, &name, &value))
        n++;
    return n;
}

static int compare_names(const void *a, const void *b)
{
    const struct sigv4_header *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void add_meta(const struct backend_ask *ask, struct headers *h)
{
    size_t pos = 0, first = h->named_count, n = count_meta(ask);
    const char *name, *value;
    for (size_t i = 0; i < n; i++) {
        backend_meta_next(ask->write->meta, ask->write->meta_len, &pos, &name, &value);
        add_signed(h, arena_printf(h->arena, META_PREFIX "%s", name), value);
    }
    if (n > 0)
        qsort(h->named + first, n, sizeof h->named[0], compare_names);
}

/* "/bucket/key" of what is copied, and of which version. */
static void add_from(const struct backend_spec *spec, const struct backend_ask *ask,
                     struct headers *h)
{
    _cleanup_buf_ struct buf from = BUF_INIT;
    if (ask->verb != BACKEND_COPY && ask->verb != BACKEND_PART_COPY)
        return;
    buf_printf(&from, "/%s/", spec->bucket);
    buf_put_url_escaped(&from, spec->prefix, strlen(spec->prefix), "/");
    buf_put_url_escaped(&from, ask->write->from, strlen(ask->write->from), "/");
    add_signed(h, "x-amz-copy-source", arena_strdup(h->arena, buf_str(&from)));
    add_signed(h, "x-amz-copy-source-if-match", ask->write->from_etag);
    if (ask->verb == BACKEND_PART_COPY)
        add_signed(h, "x-amz-copy-source-range", ask->write->from_range);
}

/* In the order of their names, as the signature wants it. */
static void add_signed_headers(const struct backend_spec *spec, const struct backend_ask *ask,
                               const struct place *place, const char *body, struct headers *h)
{
    char time[SIGV4_TIME_MAX], md5[BACKEND_DIGEST_MAX];
    sigv4_time(ask->wall_ms / 1000, time);
    if (ask->write != NULL && ask->write->md5.type != CHECKSUM_NONE)
        add_signed(h, "content-md5",
                   arena_strdup(h->arena, backend_format_digest(&ask->write->md5, md5)));
    add_signed(h, "host", place->host);
    if (ask->verb == BACKEND_READ)
        add_signed(h, "x-amz-checksum-mode", "ENABLED");
    const char *payload = spec->is_signed ? payload_of(ask, body, h->arena) : NULL;
    if (spec->is_signed)
        add_signed(h, "x-amz-content-sha256", payload);
    add_from(spec, ask, h);
    if (spec->is_signed)
        add_signed(h, "x-amz-date", time);
    add_meta(ask, h);
    if (spec->is_signed) {
        if (*ask->keys->token != '\0')
            add_signed(h, "x-amz-security-token", ask->keys->token);
        sign(spec, ask, place, ask->keys, time, payload, h);
    }
}

static bool takes_type(const struct backend_ask *ask)
{
    return is_begun(ask) && ask->write->content_type != NULL;
}

static const char *encoding_of(const struct backend_ask *ask)
{
    return is_begun(ask) ? backend_meta_encoding(ask->write->meta, ask->write->meta_len) : NULL;
}

/* No signature has them. */
static void add_kept(const struct backend_ask *ask, struct headers *h)
{
    const char *name, *value;
    for (size_t pos = 0; is_begun(ask) && backend_meta_kept(ask->write->meta, ask->write->meta_len,
                                                            &pos, &name, &value);)
        add_line(h, name, value);
}

static int s3_request(const struct backend_spec *spec, const struct backend_ask *ask,
                      struct arena *a, struct backend_request *out, struct error *err)
{
    const struct place place = find_place(spec, ask, a);
    size_t meta = count_meta(ask);
    struct headers h = {.arena = a,
                        .named = arena_alloc(a, (SIGNED_MAX + meta) * sizeof(struct sigv4_header)),
                        .lines =
                            arena_alloc(a, (HEADERS_MAX + OWN_METAS_MAX + meta) * sizeof(char *))};
    const char *body = ask->verb == BACKEND_PARTS_END ? s3_xml_parts(ask->write, a) : NULL;
    (void)err;
    add_signed_headers(spec, ask, &place, body, &h);
    add_line(&h, "accept-encoding", "identity");
    if (takes_type(ask))
        add_line(&h, "content-type", ask->write->content_type);
    if (encoding_of(ask) != NULL)
        add_line(&h, "content-encoding", encoding_of(ask));
    add_kept(ask, &h);
    h.count += backend_ask_lines(ask, a, h.lines + h.count);
    *out = (struct backend_request){.url = arena_printf(a, "%s%s%s%s%s", place.scheme, place.host,
                                                        place.path, *place.query != '\0' ? "?" : "",
                                                        place.query),
                                    .headers = h.lines,
                                    .body = body};
    return 0;
}

/* --- checksums -------------------------------------------------------------------------------- */

/* An entity tag is the MD5 of the bytes unless the object came in parts ("…-3"), or was encrypted
 * with keys that are not the service's own. */
static bool etag_is_md5(const struct http_head *head)
{
    const char *encryption = head->header(head, "x-amz-server-side-encryption");
    return (encryption == NULL || strcmp(encryption, "AES256") == 0) &&
           head->header(head, "x-amz-server-side-encryption-customer-algorithm") == NULL;
}

static bool parse_md5_etag(const char *etag, struct checksum_value *out)
{
    char hex[33];
    if (strlen(etag) != 34 || !backend_etag_is_strong(etag))
        return false;
    memcpy(hex, etag + 1, 32);
    hex[32] = '\0';
    return checksum_parse(CHECKSUM_MD5, hex, out, NULL) == 0;
}

/* The service's own checksums ("…-3": of the parts' checksums, which says nothing of the whole)
 * before the tag.  They come with a range, too, and mean the whole. */
static void s3_sum(const struct http_head *head, struct checksum_value *out)
{
    const char *crc32c = head->header(head, "x-amz-checksum-crc32c");
    const char *sha256 = head->header(head, "x-amz-checksum-sha256");
    const char *etag = head->header(head, "ETag");
    if (crc32c != NULL && checksum_parse_base64(CHECKSUM_CRC32C, crc32c, out))
        return;
    if (sha256 != NULL && checksum_parse_base64(CHECKSUM_SHA256, sha256, out))
        return;
    if (etag != NULL && etag_is_md5(head) && parse_md5_etag(etag, out))
        return;
    *out = (struct checksum_value){.type = CHECKSUM_NONE};
}

const struct backend_ops backend_s3 = {
    .provider = "s3",
    .verbs =
        BACKEND_WRITES | BACKEND_PARTS | BACKEND_VERB(BACKEND_COPY) | BACKEND_VERB(BACKEND_LIST),
    .request = s3_request,
    .sum = s3_sum,
    .words = s3_xml_error,
    .upload_id = s3_xml_upload_id,
    .end_etag = s3_xml_parts_etag,
    .copied = s3_xml_copy_etag,
    .page = s3_xml_page,
    .meta_prefix = META_PREFIX,
    .takes_meta = true,
    .keeps_headers = true,
    .signs = true,
};
