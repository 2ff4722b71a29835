/* S3 and what speaks it: GET and HEAD of an object, signed by Signature Version 4 (or not, for
 * public buckets), path style or virtual-host style. */
#include "target/backend/backend.h"

#include <string.h>

#include "target/backend/aws_keys.h"
#include "target/backend/s3_xml.h"
#include "target/backend/sigv4.h"

enum { HEADERS_MAX = 12, SIGNED_MAX = 6 };

/* --- where ------------------------------------------------------------------------------------ */

struct place {
    const char *scheme; /* "https://" */
    const char *host;   /* as the header Host has it */
    const char *path;   /* encoded, with the key */
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

static struct place find_place(const struct backend_spec *spec, const char *name, struct arena *a)
{
    struct place p = {.scheme = strncmp(spec->endpoint, "https", 5) == 0 ? "https://" : "http://"};
    const char *host = spec->endpoint + strlen(p.scheme);
    size_t host_len = strcspn(host, "/");
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, host + host_len);
    p.host = host_header(a, p.scheme, host, host_len);
    if (spec->path_style)
        buf_printf(&path, "/%s", spec->bucket);
    else
        p.host = arena_printf(a, "%s.%s", spec->bucket, p.host);
    buf_putc(&path, '/');
    buf_put_url_escaped(&path, spec->prefix, strlen(spec->prefix), "/");
    buf_put_url_escaped(&path, name, strlen(name), "/");
    p.path = arena_strdup(a, buf_str(&path));
    return p;
}

/* --- headers ---------------------------------------------------------------------------------- */

struct headers {
    struct arena *arena;
    struct sigv4_header named[SIGNED_MAX]; /* the signed ones, in order */
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
                 struct headers *h)
{
    _cleanup_(buf_done)
    struct buf authorization = BUF_INIT;
    const struct sigv4_keys k = {.access = keys->access, .secret = keys->secret};
    const struct sigv4_request r = {.method = http_method_name(ask->method),
                                    .path = place->path,
                                    .query = "",
                                    .headers = h->named,
                                    .header_count = h->named_count,
                                    .payload_sha256 = SIGV4_EMPTY_SHA256,
                                    .time = time,
                                    .region = spec->region,
                                    .service = "s3"};
    sigv4_authorization(&r, &k, &authorization);
    add_line(h, "authorization", buf_str(&authorization));
}

/* In the order of their names, as the signature wants it. */
static int add_signed_headers(const struct backend_spec *spec, const struct backend_ask *ask,
                              const struct place *place, struct headers *h, struct error *err)
{
    struct aws_keys keys = {.token = ""};
    char time[SIGV4_TIME_MAX];
    int code = spec->is_signed ? aws_keys_load(spec->profile, &keys, err) : 0;
    if (code != 0)
        return code;
    sigv4_time(ask->wall_ms / 1000, time);
    add_signed(h, "host", place->host);
    add_signed(h, "x-amz-checksum-mode", "ENABLED");
    if (spec->is_signed) {
        add_signed(h, "x-amz-content-sha256", SIGV4_EMPTY_SHA256);
        add_signed(h, "x-amz-date", time);
        if (*keys.token != '\0')
            add_signed(h, "x-amz-security-token", keys.token);
        sign(spec, ask, place, &keys, time, h);
    }
    aws_keys_wipe(&keys);
    return 0;
}

static int s3_request(const struct backend_spec *spec, const struct backend_ask *ask,
                      struct arena *a, struct backend_request *out, struct error *err)
{
    const struct place place = find_place(spec, ask->name, a);
    struct headers h = {.arena = a, .lines = arena_alloc(a, HEADERS_MAX * sizeof(char *))};
    int code = add_signed_headers(spec, ask, &place, &h, err);
    if (code != 0)
        return code;
    add_line(&h, "accept-encoding", "identity");
    if (ask->range != NULL)
        add_line(&h, "range", ask->range);
    if (ask->if_match != NULL)
        add_line(&h, "if-match", ask->if_match);
    *out = (struct backend_request){
        .url = arena_printf(a, "%s%s%s", place.scheme, place.host, place.path), .headers = h.lines};
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
    if (crc32c != NULL && backend_parse_digest(CHECKSUM_CRC32C, crc32c, out))
        return;
    if (sha256 != NULL && backend_parse_digest(CHECKSUM_SHA256, sha256, out))
        return;
    if (etag != NULL && etag_is_md5(head) && parse_md5_etag(etag, out))
        return;
    *out = (struct checksum_value){.type = CHECKSUM_NONE};
}

const struct backend_ops backend_s3 = {
    .provider = "s3",
    .request = s3_request,
    .sum = s3_sum,
    .words = s3_xml_error,
};
