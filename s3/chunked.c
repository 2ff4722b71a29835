#include "s3/chunked.h"

#include <assert.h>
#include <ctype.h>
#include <openssl/crypto.h>
#include <string.h>
#include <strings.h>

#include "common/checksum.h"
#include "common/mem.h"
#include "common/parse.h"

#define SIGNATURE_OPTION "chunk-signature="
#define TRAILER_SIGNATURE "x-amz-trailer-signature"

enum state {
    AT_SIZE,      /* in the line of a chunk's size */
    AT_BYTES,     /* in the bytes of a chunk, of which `left` are missing */
    AT_CHUNK_END, /* in the line end behind a chunk */
    AT_TRAILERS,  /* in a line behind the last chunk */
    AT_END,
};

struct trailer {
    char *name, *value; /* value NULL: it has not come yet */
};

struct s3_chunked {
    enum state state;
    bool is_signed, has_no_key, has_trailers, trailers_signed;
    struct buf line;  /* what has come of the line */
    struct buf scope; /* "TIME\nSCOPE\n" */
    unsigned char key[AUTH_MAC_BYTES];
    char previous[AUTH_HEX_MAX];  /* signature */
    char announced[AUTH_HEX_MAX]; /* signature of this chunk, as its line says */
    struct checksum *digest;      /* of this chunk; NULL where chunks are not signed */
    uint64_t left, missing;       /* bytes of this chunk; of the whole body */
    struct trailer trailers[S3_CHUNKED_TRAILERS_MAX];
    size_t trailer_count;
    struct buf trailer_text; /* what their signature is over */
};

static enum s3_error malformed(struct s3_failure *why, const char *what)
{
    return s3_fail(why, S3_INVALID_REQUEST, "The aws-chunked body is malformed: %s", what);
}

/* --- begin and end ---------------------------------------------------------------------------- */

static enum s3_error announce(struct s3_chunked *c, const char *names, struct s3_failure *why)
{
    _cleanup_free_ char *rest = xstrdup(names);
    char *save = NULL;
    for (char *name = strtok_r(rest, ", \t", &save); name != NULL;
         name = strtok_r(NULL, ", \t", &save)) {
        if (!c->has_trailers || c->trailer_count == S3_CHUNKED_TRAILERS_MAX)
            return s3_fail(why, S3_MALFORMED_TRAILER, NULL);
        c->trailers[c->trailer_count++].name = xstrdup(name);
    }
    return S3_OK;
}

static void begin_signatures(struct s3_chunked *c, const struct s3_chunked_spec *spec)
{
    const struct s3_credential *by = spec->credential;
    memcpy(c->key, spec->key, sizeof c->key);
    c->has_no_key = spec->has_no_key;
    snprintf(c->previous, sizeof c->previous, "%s", by->signature);
    buf_printf(&c->scope, "%s\n", by->time);
    sigv4_put_scope(by->time, by->region, by->service, &c->scope);
    buf_putc(&c->scope, '\n');
    c->digest = checksum_new(CHECKSUM_SHA256);
}

enum s3_error s3_chunked_new(const struct s3_chunked_spec *spec, struct s3_chunked **out,
                             struct s3_failure *why)
{
    enum s3_payload payload = spec->credential->payload;
    assert(payload >= S3_PAYLOAD_CHUNKS_SIGNED);
    _cleanup_(s3_chunked_freep)
    struct s3_chunked *c = xcalloc(1, sizeof *c);
    c->is_signed = payload != S3_PAYLOAD_CHUNKS_TRAILER;
    c->has_trailers = payload != S3_PAYLOAD_CHUNKS_SIGNED;
    c->missing = spec->decoded_length;
    if (c->is_signed)
        begin_signatures(c, spec);
    enum s3_error e = announce(c, spec->trailers != NULL ? spec->trailers : "", why);
    if (e == S3_OK)
        *out = steal(c);
    return e;
}

void s3_chunked_free(struct s3_chunked *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->trailer_count; i++) {
        free(c->trailers[i].name);
        free(c->trailers[i].value);
    }
    buf_done(&c->line);
    buf_done(&c->scope);
    buf_done(&c->trailer_text);
    checksum_free(c->digest);
    OPENSSL_cleanse(c->key, sizeof c->key);
    free(c);
}

/* --- signatures ------------------------------------------------------------------------------- */

/* Is `signature` that of `algorithm` over the last signature and `texts`?  It is the last one then.
 */
static enum s3_error check_signature(struct s3_chunked *c, const char *algorithm, const char *texts,
                                     const char *signature, struct s3_failure *why)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    unsigned char mac[AUTH_MAC_BYTES];
    char wanted[AUTH_HEX_MAX];
    buf_printf(&text, "%s\n%s%s\n%s", algorithm, buf_str(&c->scope), c->previous, texts);
    auth_hmac(c->key, sizeof c->key, text.data, text.len, mac);
    format_hex(mac, sizeof mac, wanted);
    memcpy(c->previous, wanted, sizeof wanted);
    return c->has_no_key || auth_same(wanted, signature) ? S3_OK : s3_fail(why, S3_SIGNATURE, NULL);
}

static enum s3_error check_chunk(struct s3_chunked *c, struct s3_failure *why)
{
    struct checksum_value value;
    char hex[AUTH_HEX_MAX], texts[2 * AUTH_HEX_MAX];
    if (!c->is_signed)
        return S3_OK;
    checksum_final(c->digest, &value);
    checksum_free(c->digest);
    c->digest = checksum_new(CHECKSUM_SHA256);
    checksum_hex(&value, hex);
    snprintf(texts, sizeof texts, "%s\n%s", SIGV4_EMPTY_SHA256, hex);
    return check_signature(c, "AWS4-HMAC-SHA256-PAYLOAD", texts, c->announced, why);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* "400" or "400;chunk-signature=HEX" */
static enum s3_error read_size(struct s3_chunked *c, const char *line, struct s3_failure *why)
{
    size_t digits = strspn(line, "0123456789abcdefABCDEF");
    const char *option = line + digits;
    if (digits == 0 || digits > 15)
        return malformed(why, "a chunk has no size");
    c->left = strtoull(line, NULL, 16);
    if (!c->is_signed)
        return *option == '\0' ? S3_OK : malformed(why, "a chunk's size has an option");
    if (*option++ != ';' || strncmp(option, SIGNATURE_OPTION, strlen(SIGNATURE_OPTION)) != 0)
        return malformed(why, "a chunk has no signature");
    snprintf(c->announced, sizeof c->announced, "%s", option + strlen(SIGNATURE_OPTION));
    return S3_OK;
}

static enum s3_error take_size(struct s3_chunked *c, const char *line, struct s3_failure *why)
{
    enum s3_error e = read_size(c, line, why);
    if (e != S3_OK)
        return e;
    if (c->left > c->missing || (c->left == 0 && c->missing > 0))
        return s3_fail(why, S3_INCOMPLETE_BODY,
                       "The chunks have %s bytes than x-amz-decoded-content-length",
                       c->left > 0 ? "more" : "fewer");
    c->missing -= c->left;
    if (c->left > 0) {
        c->state = AT_BYTES;
        return S3_OK;
    }
    c->state = AT_TRAILERS;
    return check_chunk(c, why);
}

static enum s3_error take_chunk_end(struct s3_chunked *c, const char *line, struct s3_failure *why)
{
    if (*line != '\0')
        return malformed(why, "a chunk is longer than its size");
    c->state = AT_SIZE;
    return check_chunk(c, why);
}

static struct trailer *find_trailer(const struct s3_chunked *c, const char *name)
{
    for (size_t i = 0; i < c->trailer_count; i++) {
        if (strcasecmp(c->trailers[i].name, name) == 0)
            return (struct trailer *)&c->trailers[i];
    }
    return NULL;
}

static enum s3_error take_trailers_end(struct s3_chunked *c, struct s3_failure *why)
{
    for (size_t i = 0; i < c->trailer_count; i++) {
        if (c->trailers[i].value == NULL)
            return s3_fail(why, S3_MALFORMED_TRAILER, "The trailer %.64s is missing",
                           c->trailers[i].name);
    }
    if (c->is_signed && c->has_trailers && !c->trailers_signed)
        return s3_fail(why, S3_MALFORMED_TRAILER, "The trailers are not signed");
    c->state = AT_END;
    return S3_OK;
}

static enum s3_error take_trailer_signature(struct s3_chunked *c, const char *signature,
                                            struct s3_failure *why)
{
    char hex[AUTH_HEX_MAX];
    if (!c->is_signed)
        return s3_fail(why, S3_MALFORMED_TRAILER, "The trailers are signed, but not the chunks");
    auth_digest(buf_str(&c->trailer_text), c->trailer_text.len, hex);
    c->trailers_signed = true;
    return check_signature(c, "AWS4-HMAC-SHA256-TRAILER", hex, signature, why);
}

/* "NAME:VALUE", or the empty line behind the last one. */
static enum s3_error take_trailer(struct s3_chunked *c, char *line, struct s3_failure *why)
{
    if (*line == '\0')
        return take_trailers_end(c, why);
    char *colon = strchr(line, ':');
    if (colon == NULL || !c->has_trailers || c->trailers_signed)
        return malformed(why, "there are bytes behind its end");
    *colon = '\0';
    const char *value = colon + 1 + strspn(colon + 1, " \t");
    if (strcasecmp(line, TRAILER_SIGNATURE) == 0)
        return take_trailer_signature(c, value, why);
    struct trailer *t = find_trailer(c, line);
    if (t == NULL || t->value != NULL)
        return s3_fail(why, S3_MALFORMED_TRAILER, "The trailer %.64s is not announced, or is twice",
                       line);
    t->value = xstrdup(value);
    for (const char *at = line; *at != '\0'; at++)
        buf_putc(&c->trailer_text, (char)tolower((unsigned char)*at));
    buf_printf(&c->trailer_text, ":%s\n", value);
    return S3_OK;
}

static enum s3_error take_line(struct s3_chunked *c, struct s3_failure *why)
{
    char *line = c->line.data;
    if (strlen(line) != c->line.len || c->line.len < 2 || line[c->line.len - 2] != '\r')
        return malformed(why, "a line does not end with CR LF");
    line[c->line.len - 2] = '\0';
    switch (c->state) {
    case AT_SIZE:
        return take_size(c, line, why);
    case AT_CHUNK_END:
        return take_chunk_end(c, line, why);
    default:
        return take_trailer(c, line, why);
    }
}

/* --- the body --------------------------------------------------------------------------------- */

static enum s3_error collect_line(struct s3_chunked *c, const char **data, size_t *len,
                                  struct s3_failure *why)
{
    const char *end = memchr(*data, '\n', *len);
    size_t n = end != NULL ? (size_t)(end - *data) + 1 : *len;
    if (c->line.len + n > S3_CHUNKED_LINE_MAX)
        return malformed(why, "a line is too long");
    buf_append(&c->line, *data, n);
    *data += n;
    *len -= n;
    if (end == NULL)
        return S3_OK;
    enum s3_error e = take_line(c, why);
    buf_clear(&c->line);
    return e;
}

static void give_bytes(struct s3_chunked *c, const char **data, size_t *len, const char **out,
                       size_t *out_len)
{
    size_t n = *len < c->left ? *len : (size_t)c->left;
    *out = *data;
    *out_len = n;
    *data += n;
    *len -= n;
    c->left -= n;
    if (c->is_signed)
        checksum_update(c->digest, *out, n);
    if (c->left == 0)
        c->state = AT_CHUNK_END;
}

enum s3_error s3_chunked_decode(struct s3_chunked *c, const char **data, size_t *len,
                                const char **out, size_t *out_len, struct s3_failure *why)
{
    enum s3_error e = S3_OK;
    *out_len = 0;
    while (e == S3_OK && *len > 0 && *out_len == 0) {
        if (c->state == AT_BYTES)
            give_bytes(c, data, len, out, out_len);
        else if (c->state == AT_END)
            e = malformed(why, "there are bytes behind its end");
        else
            e = collect_line(c, data, len, why);
    }
    return e;
}

enum s3_error s3_chunked_end(const struct s3_chunked *c, struct s3_failure *why)
{
    return c->state == AT_END ? S3_OK : s3_fail(why, S3_INCOMPLETE_BODY, NULL);
}

const char *s3_chunked_trailer(const struct s3_chunked *c, const char *name)
{
    const struct trailer *t = find_trailer(c, name);
    return t != NULL ? t->value : NULL;
}
