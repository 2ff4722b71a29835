#include "target/backend/sigv4.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/parse.h"

enum { DIGEST = 32, DAY_LEN = 8 };

static void hmac(const void *key, size_t key_len, const char *text, size_t len,
                 unsigned char out[static DIGEST])
{
    unsigned got = 0;
    HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)text, len, out, &got);
}

static void put_signed_names(const struct sigv4_request *r, struct buf *out)
{
    for (size_t i = 0; i < r->header_count; i++)
        buf_printf(out, "%s%s", i > 0 ? ";" : "", r->headers[i].name);
}

/* Spaces at the ends go, several in a row are one. */
static void put_trimmed(struct buf *out, const char *value)
{
    while (*value == ' ')
        value++;
    for (; *value != '\0'; value++) {
        if (*value != ' ' || (value[1] != ' ' && value[1] != '\0'))
            buf_putc(out, *value);
    }
}

static void put_canonical_request(const struct sigv4_request *r, struct buf *out)
{
    buf_printf(out, "%s\n%s\n%s\n", r->method, r->path, r->query);
    for (size_t i = 0; i < r->header_count; i++) {
        buf_printf(out, "%s:", r->headers[i].name);
        put_trimmed(out, r->headers[i].value);
        buf_putc(out, '\n');
    }
    buf_putc(out, '\n');
    put_signed_names(r, out);
    buf_printf(out, "\n%s", r->payload_sha256);
}

static void put_scope(const struct sigv4_request *r, struct buf *out)
{
    buf_printf(out, "%.*s/%s/%s/aws4_request", DAY_LEN, r->time, r->region, r->service);
}

static void put_text_to_sign(const struct sigv4_request *r, struct buf *out)
{
    _cleanup_buf_ struct buf canonical = BUF_INIT;
    unsigned char digest[DIGEST];
    char hex[2 * DIGEST + 1];
    put_canonical_request(r, &canonical);
    EVP_Digest(canonical.data, canonical.len, digest, NULL, EVP_sha256(), NULL);
    format_hex(digest, sizeof digest, hex);
    buf_printf(out, "AWS4-HMAC-SHA256\n%s\n", r->time);
    put_scope(r, out);
    buf_printf(out, "\n%s", hex);
}

static void signing_key(const struct sigv4_request *r, const char *secret,
                        unsigned char key[static DIGEST])
{
    _cleanup_buf_ struct buf first = BUF_INIT;
    buf_printf(&first, "AWS4%s", secret);
    hmac(first.data, first.len, r->time, DAY_LEN, key);
    OPENSSL_cleanse(first.data, first.len);
    hmac(key, DIGEST, r->region, strlen(r->region), key);
    hmac(key, DIGEST, r->service, strlen(r->service), key);
    hmac(key, DIGEST, "aws4_request", strlen("aws4_request"), key);
}

void sigv4_authorization(const struct sigv4_request *r, const struct sigv4_keys *keys,
                         struct buf *out)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    unsigned char key[DIGEST];
    char hex[2 * DIGEST + 1];
    put_text_to_sign(r, &text);
    signing_key(r, keys->secret, key);
    hmac(key, sizeof key, text.data, text.len, key);
    format_hex(key, sizeof key, hex);
    buf_printf(out, "AWS4-HMAC-SHA256 Credential=%s/", keys->access);
    put_scope(r, out);
    buf_puts(out, ", SignedHeaders=");
    put_signed_names(r, out);
    buf_printf(out, ", Signature=%s", hex);
}

const char *sigv4_time(long long unix_s, char out[static SIGV4_TIME_MAX])
{
    time_t t = (time_t)unix_s;
    struct tm tm;
    gmtime_r(&t, &tm);
    strftime(out, SIGV4_TIME_MAX, "%Y%m%dT%H%M%SZ", &tm);
    return out;
}
