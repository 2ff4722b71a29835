#include "s3/verify.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/parse.h"

#define ALGORITHM "AWS4-HMAC-SHA256"
#define VERSION_2 \
    "Signature Version 2 is not supported: set the client's signature version to 4 (s3v4)"
#define TERMINATOR "aws4_request"
#define AMZ "x-amz-"

enum { HEADERS_MAX = 256 };

/* --- what the request says -------------------------------------------------------------------- */

static const struct payload_row {
    const char *text;
    enum s3_payload payload;
} payloads[] = {
    {"UNSIGNED-PAYLOAD", S3_PAYLOAD_UNSIGNED},
    {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", S3_PAYLOAD_CHUNKS_SIGNED},
    {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", S3_PAYLOAD_CHUNKS_SIGNED_TRAILER},
    {"STREAMING-UNSIGNED-PAYLOAD-TRAILER", S3_PAYLOAD_CHUNKS_TRAILER},
};

static bool is_sha256(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdefABCDEF") == 64;
}

static enum s3_error read_payload(const struct s3_request *r, const struct s3_query *q,
                                  struct s3_credential *c, struct s3_failure *why)
{
    const char *text = s3_header(r, "x-amz-content-sha256");
    if (text == NULL && c->signing == S3_SIGNED_IN_QUERY)
        text = s3_query_get(q, "X-Amz-Content-Sha256");
    if (text == NULL && c->signing == S3_SIGNED_IN_HEADER)
        return s3_fail(why, S3_INVALID_REQUEST, "The header x-amz-content-sha256 is missing");
    c->payload_text = text != NULL ? text : payloads[0].text;
    c->payload = S3_PAYLOAD_DIGEST;
    if (is_sha256(c->payload_text))
        return S3_OK;
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++) {
        if (strcmp(payloads[i].text, c->payload_text) == 0) {
            c->payload = payloads[i].payload;
            return S3_OK;
        }
    }
    if (strncmp(text, "STREAMING-AWS4-ECDSA", strlen("STREAMING-AWS4-ECDSA")) == 0)
        return s3_fail(why, S3_NOT_IMPLEMENTED, "Signatures with ECDSA are not supported");
    return s3_fail(why, S3_INVALID_ARGUMENT,
                   "x-amz-content-sha256 must be a SHA-256 in hex, UNSIGNED-PAYLOAD, "
                   "STREAMING-UNSIGNED-PAYLOAD-TRAILER or "
                   "STREAMING-AWS4-HMAC-SHA256-PAYLOAD[-TRAILER]");
}

static enum s3_error malformed(const struct s3_credential *c)
{
    return c->signing == S3_SIGNED_IN_QUERY ? S3_AUTHORIZATION_QUERY : S3_AUTHORIZATION_MALFORMED;
}

/* Cuts "/tail" off the end of `text`; NULL: it has no '/'. */
static const char *cut_last(char *text)
{
    char *slash = strrchr(text, '/');
    if (slash == NULL)
        return NULL;
    *slash = '\0';
    return slash + 1;
}

/* "KEY/20130524/us-east-1/s3/aws4_request" */
static enum s3_error read_scope(const char *text, struct arena *arena, struct s3_credential *c,
                                struct s3_failure *why)
{
    char *rest = arena_strdup(arena, text);
    const char *end = cut_last(rest);
    c->service = cut_last(rest);
    c->region = cut_last(rest);
    c->day = cut_last(rest);
    c->access_key = rest;
    if (c->day == NULL || strlen(c->day) != 8 || *rest == '\0' || strcmp(end, TERMINATOR) != 0)
        return s3_fail(why, malformed(c),
                       "The credential must be ACCESS-KEY/YYYYMMDD/REGION/s3/" TERMINATOR);
    return S3_OK;
}

static enum s3_error read_fields(const char *credential, const char *signed_headers,
                                 const char *signature, struct arena *arena,
                                 struct s3_credential *c, struct s3_failure *why)
{
    long long unused;
    if (credential == NULL || signed_headers == NULL || signature == NULL)
        return s3_fail(why, malformed(c),
                       "The authorization needs Credential, SignedHeaders and Signature");
    c->signed_headers = signed_headers;
    c->signature = signature;
    enum s3_error e = read_scope(credential, arena, c, why);
    if (e != S3_OK)
        return e;
    if (c->time == NULL || !sigv4_parse_time(c->time, &unused))
        return s3_fail(why, S3_ACCESS_DENIED,
                       "The request needs an x-amz-date of the form YYYYMMDDTHHMMSSZ");
    if (strncmp(c->time, c->day, 8) != 0)
        return s3_fail(why, malformed(c), "The credential's day is not that of the request");
    return S3_OK;
}

/* The value of "NAME=" at the beginning of the item, or what was found before. */
static const char *value_of(const char *item, const char *name, const char *before)
{
    size_t len = strlen(name);
    return strncmp(item, name, len) == 0 ? item + len : before;
}

static enum s3_error read_header(const struct s3_request *r, const char *header,
                                 struct arena *arena, struct s3_credential *c,
                                 struct s3_failure *why)
{
    const char *credential = NULL, *names = NULL, *signature = NULL;
    size_t len = strcspn(header, " \t");
    if (strncmp(header, "AWS4-ECDSA", strlen("AWS4-ECDSA")) == 0)
        return s3_fail(why, S3_NOT_IMPLEMENTED, "Signatures with ECDSA are not supported");
    if (len == strlen("AWS") && strncmp(header, "AWS", len) == 0)
        return s3_fail(why, S3_INVALID_REQUEST, VERSION_2);
    if (len != strlen(ALGORITHM) || strncmp(header, ALGORITHM, len) != 0)
        return s3_fail(why, S3_INVALID_ARGUMENT, "The authorization type must be " ALGORITHM);
    char *save = NULL, *rest = arena_strdup(arena, header + len);
    for (char *item = strtok_r(rest, ", \t", &save); item != NULL;
         item = strtok_r(NULL, ", \t", &save)) {
        credential = value_of(item, "Credential=", credential);
        names = value_of(item, "SignedHeaders=", names);
        signature = value_of(item, "Signature=", signature);
    }
    c->time = s3_header(r, "x-amz-date");
    return read_fields(credential, names, signature, arena, c, why);
}

static enum s3_error read_query(const struct s3_query *q, struct arena *arena,
                                struct s3_credential *c, struct s3_failure *why)
{
    const char *algorithm = s3_query_get(q, "X-Amz-Algorithm");
    const char *expires = s3_query_get(q, "X-Amz-Expires");
    if (algorithm != NULL && strncmp(algorithm, "AWS4-ECDSA", strlen("AWS4-ECDSA")) == 0)
        return s3_fail(why, S3_NOT_IMPLEMENTED, "Signatures with ECDSA are not supported");
    if (algorithm == NULL || strcmp(algorithm, ALGORITHM) != 0)
        return s3_fail(why, S3_AUTHORIZATION_QUERY, "X-Amz-Algorithm must be " ALGORITHM);
    if (expires == NULL || parse_u64(expires, &c->expires_s, NULL) != 0 || c->expires_s == 0 ||
        c->expires_s > S3_EXPIRES_MAX_S)
        return s3_fail(why, S3_AUTHORIZATION_QUERY, "X-Amz-Expires must be 1 to %d seconds",
                       S3_EXPIRES_MAX_S);
    c->time = s3_query_get(q, "X-Amz-Date");
    return read_fields(s3_query_get(q, "X-Amz-Credential"), s3_query_get(q, "X-Amz-SignedHeaders"),
                       s3_query_get(q, "X-Amz-Signature"), arena, c, why);
}

static bool is_presigned(const struct s3_query *q)
{
    return s3_query_get(q, "X-Amz-Algorithm") != NULL ||
           s3_query_get(q, "X-Amz-Credential") != NULL ||
           s3_query_get(q, "X-Amz-Signature") != NULL;
}

static enum s3_error read_signature(const struct s3_request *r, const struct s3_query *q,
                                    struct arena *arena, struct s3_credential *c,
                                    struct s3_failure *why)
{
    const char *header = s3_header(r, "authorization");
    if (s3_query_get(q, "AWSAccessKeyId") != NULL && s3_query_get(q, "Signature") != NULL)
        return s3_fail(why, S3_INVALID_REQUEST, VERSION_2);
    if (header != NULL && is_presigned(q))
        return s3_fail(why, S3_INVALID_ARGUMENT,
                       "A request is signed in its header or in its query, not in both");
    if (header == NULL && !is_presigned(q))
        return S3_OK;
    if (s3_header(r, "x-amz-security-token") != NULL ||
        s3_query_get(q, "X-Amz-Security-Token") != NULL)
        return s3_fail(why, S3_INVALID_TOKEN, NULL);
    c->signing = header != NULL ? S3_SIGNED_IN_HEADER : S3_SIGNED_IN_QUERY;
    return header != NULL ? read_header(r, header, arena, c, why) : read_query(q, arena, c, why);
}

enum s3_error s3_verify_read(const struct s3_request *r, const struct s3_query *q,
                             struct arena *arena, struct s3_credential *out, struct s3_failure *why)
{
    *out = (struct s3_credential){.signing = S3_SIGNED_NOT};
    enum s3_error e = read_signature(r, q, arena, out, why);
    if (e == S3_OK)
        e = read_payload(r, q, out, why);
    if (e == S3_OK && out->signing == S3_SIGNED_NOT &&
        (out->payload == S3_PAYLOAD_CHUNKS_SIGNED ||
         out->payload == S3_PAYLOAD_CHUNKS_SIGNED_TRAILER))
        return s3_fail(why, S3_ACCESS_DENIED, "The body's chunks are signed, but not the request");
    return e;
}

/* --- region and time -------------------------------------------------------------------------- */

static enum s3_error check_time(const struct s3_credential *c, long long now_s,
                                struct s3_failure *why)
{
    long long time_s = 0;
    bool is_time = sigv4_parse_time(c->time, &time_s);
    bool is_early = !is_time || time_s > now_s + S3_CLOCK_SKEW_S;
    if (c->signing == S3_SIGNED_IN_HEADER) {
        bool is_late = now_s > time_s + S3_CLOCK_SKEW_S;
        return is_early || is_late ? s3_fail(why, S3_TIME_SKEWED, NULL) : S3_OK;
    }
    if (is_early)
        return s3_fail(why, S3_ACCESS_DENIED, "The URL is not valid yet");
    if (now_s > time_s + (long long)c->expires_s)
        return s3_fail(why, S3_ACCESS_DENIED, "The URL has expired");
    return S3_OK;
}

enum s3_error s3_verify_scope(const struct s3_credential *c, const char *region, long long now_s,
                              struct s3_failure *why)
{
    if (strcmp(c->service, "s3") != 0)
        return s3_fail(why, malformed(c), "The service '%.32s' is wrong; expecting 's3'",
                       c->service);
    if (strcmp(c->region, region) != 0)
        return s3_fail(why, malformed(c), "The region '%.32s' is wrong; expecting '%s'", c->region,
                       region);
    return check_time(c, now_s, why);
}

/* --- the signature ---------------------------------------------------------------------------- */

static bool names_have(const char *names, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = names; *at != '\0';
         at += strcspn(at, ";") + (at[strcspn(at, ";")] == ';')) {
        if (strcspn(at, ";") == len && strncasecmp(at, name, len) == 0)
            return true;
    }
    return false;
}

static enum s3_error check_signed(const struct s3_request *r, const struct s3_credential *c,
                                  struct s3_failure *why)
{
    if (!names_have(c->signed_headers, "host"))
        return s3_fail(why, S3_ACCESS_DENIED, "The header host must be signed");
    for (size_t i = 0; i < r->header_count; i++) {
        const char *name = r->headers[i].name;
        if (strncasecmp(name, AMZ, strlen(AMZ)) == 0 && !names_have(c->signed_headers, name))
            return s3_fail(why, S3_ACCESS_DENIED, "The header %.64s must be signed", name);
    }
    return S3_OK;
}

static void put_stripped(struct buf *out, const char *value)
{
    size_t len;
    value += strspn(value, " \t");
    for (len = strlen(value); len > 0 && strchr(" \t", value[len - 1]) != NULL;)
        len--;
    buf_append(out, value, len);
}

/* All values of the name, with commas; NULL: the request has none. */
static const char *join_values(const struct s3_request *r, const char *name, struct arena *arena)
{
    _cleanup_buf_ struct buf out = BUF_INIT;
    size_t found = 0;
    for (size_t i = 0; i < r->header_count; i++) {
        if (strcasecmp(r->headers[i].name, name) != 0)
            continue;
        if (found++ > 0)
            buf_putc(&out, ',');
        put_stripped(&out, r->headers[i].value);
    }
    return found > 0 ? arena_strdup(arena, buf_str(&out)) : NULL;
}

static int compare_headers(const void *a, const void *b)
{
    const struct sigv4_header *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* The signed headers, sorted; false: one is not in the request, or they are too many. */
static bool collect_headers(const struct s3_request *r, const char *names, struct arena *arena,
                            struct sigv4_header *out, size_t *count)
{
    char *save = NULL, *rest = arena_strdup(arena, names);
    *count = 0;
    for (char *name = strtok_r(rest, ";", &save); name != NULL; name = strtok_r(NULL, ";", &save)) {
        for (char *at = name; *at != '\0'; at++)
            *at = (char)tolower((unsigned char)*at);
        const char *value = join_values(r, name, arena);
        if (value == NULL || *count == HEADERS_MAX)
            return false;
        out[(*count)++] = (struct sigv4_header){name, value};
    }
    qsort(out, *count, sizeof out[0], compare_headers);
    return true;
}

/* NULL: it cannot be decoded. */
static const char *canonical_path(const char *path, struct arena *arena)
{
    _cleanup_buf_ struct buf out = BUF_INIT;
    char *decoded = arena_bytes(arena, strlen(path) + 1);
    int64_t len = parse_url_unescape(path, strlen(path), decoded, NULL);
    if (len < 0)
        return NULL;
    buf_put_url_escaped(&out, decoded, (size_t)len, "/");
    return arena_strdup(arena, len > 0 ? buf_str(&out) : "/");
}

enum s3_error s3_verify_signature(const struct s3_request *r, const struct s3_query *q,
                                  const struct s3_credential *c,
                                  const unsigned char key[static AUTH_MAC_BYTES],
                                  struct arena *arena, struct s3_failure *why)
{
    _cleanup_buf_ struct buf query = BUF_INIT;
    struct sigv4_header *headers = arena_alloc(arena, HEADERS_MAX * sizeof headers[0]);
    size_t count;
    char wanted[AUTH_HEX_MAX];
    enum s3_error e = check_signed(r, c, why);
    if (e != S3_OK)
        return e;
    const char *path = canonical_path(r->path, arena);
    if (path == NULL || !collect_headers(r, c->signed_headers, arena, headers, &count))
        return s3_fail(why, S3_SIGNATURE, NULL);
    const char *except = c->signing == S3_SIGNED_IN_QUERY ? "X-Amz-Signature" : "";
    s3_query_canonical(q, except, arena, &query);
    const struct sigv4_request canonical = {.method = r->method,
                                            .path = path,
                                            .query = buf_str(&query),
                                            .headers = headers,
                                            .header_count = count,
                                            .payload_sha256 = c->payload_text,
                                            .time = c->time,
                                            .region = c->region,
                                            .service = c->service};
    sigv4_signature(&canonical, key, wanted);
    return auth_same(wanted, c->signature) ? S3_OK : s3_fail(why, S3_SIGNATURE, NULL);
}
