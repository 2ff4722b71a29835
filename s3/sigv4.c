#include "s3/sigv4.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/parse.h"

enum { DAY_LEN = 8 };

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

void sigv4_put_scope(const char *time, const char *region, const char *service, struct buf *out)
{
    buf_printf(out, "%.*s/%s/%s/aws4_request", DAY_LEN, time, region, service);
}

static void put_text_to_sign(const struct sigv4_request *r, struct buf *out)
{
    _cleanup_buf_ struct buf canonical = BUF_INIT;
    char hex[AUTH_HEX_MAX];
    put_canonical_request(r, &canonical);
    auth_digest(canonical.data, canonical.len, hex);
    buf_printf(out, "AWS4-HMAC-SHA256\n%s\n", r->time);
    sigv4_put_scope(r->time, r->region, r->service, out);
    buf_printf(out, "\n%s", hex);
}

void sigv4_signing_key(const char *secret, const char *time, const char *region,
                       const char *service, unsigned char key[static AUTH_MAC_BYTES])
{
    _cleanup_buf_ struct buf first = BUF_INIT;
    buf_printf(&first, "AWS4%s", secret);
    auth_hmac(first.data, first.len, time, DAY_LEN, key);
    OPENSSL_cleanse(first.data, first.len);
    auth_hmac(key, AUTH_MAC_BYTES, region, strlen(region), key);
    auth_hmac(key, AUTH_MAC_BYTES, service, strlen(service), key);
    auth_hmac(key, AUTH_MAC_BYTES, "aws4_request", strlen("aws4_request"), key);
}

void sigv4_signature(const struct sigv4_request *r, const unsigned char key[static AUTH_MAC_BYTES],
                     char hex[static AUTH_HEX_MAX])
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    unsigned char mac[AUTH_MAC_BYTES];
    put_text_to_sign(r, &text);
    auth_hmac(key, AUTH_MAC_BYTES, text.data, text.len, mac);
    format_hex(mac, sizeof mac, hex);
}

void sigv4_authorization(const struct sigv4_request *r, const struct sigv4_keys *keys,
                         struct buf *out)
{
    unsigned char key[AUTH_MAC_BYTES];
    char hex[AUTH_HEX_MAX];
    sigv4_signing_key(keys->secret, r->time, r->region, r->service, key);
    sigv4_signature(r, key, hex);
    OPENSSL_cleanse(key, sizeof key);
    buf_printf(out, "AWS4-HMAC-SHA256 Credential=%s/", keys->access);
    sigv4_put_scope(r->time, r->region, r->service, out);
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

bool sigv4_parse_time(const char *text, long long *unix_s)
{
    static const char shape[] = "ddddddddTddddddZ";
    struct tm tm = {.tm_isdst = 0};
    char again[SIGV4_TIME_MAX];
    if (strlen(text) != sizeof shape - 1)
        return false;
    for (size_t i = 0; i < sizeof shape - 1; i++) {
        if (shape[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != shape[i])
            return false;
    }
    if (strptime(text, "%Y%m%dT%H%M%SZ", &tm) == NULL)
        return false;
    *unix_s = timegm(&tm);
    return strcmp(sigv4_time(*unix_s, again), text) == 0; /* not the 30th of February */
}
