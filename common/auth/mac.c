#include "common/auth/mac.h"

#include <assert.h>
#include <ctype.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/parse.h"

void auth_hmac(const void *key, size_t key_len, const void *data, size_t len,
               unsigned char out[AUTH_MAC_BYTES])
{
    unsigned size = AUTH_MAC_BYTES;
    unsigned char *mac = HMAC(EVP_sha256(), key, (int)key_len, data, len, out, &size);
    assert(mac != NULL && size == AUTH_MAC_BYTES);
    (void)mac;
}

void auth_hkdf(const void *key, size_t key_len, const void *salt, size_t salt_len, const void *info,
               size_t info_len, unsigned char out[AUTH_MAC_BYTES])
{
    unsigned char prk[AUTH_MAC_BYTES];
    _cleanup_(buf_done)
    struct buf block = BUF_INIT;
    auth_hmac(salt, salt_len, key, key_len, prk);
    buf_append(&block, info, info_len);
    buf_putc(&block, 1);
    auth_hmac(prk, sizeof prk, block.data, block.len, out);
    OPENSSL_cleanse(prk, sizeof prk);
}

void auth_digest(const void *data, size_t len, char hex[AUTH_HEX_MAX])
{
    unsigned char digest[AUTH_MAC_BYTES];
    int ok = EVP_Digest(data, len, digest, NULL, EVP_sha256(), NULL);
    assert(ok == 1);
    (void)ok;
    format_hex(digest, sizeof digest, hex);
}

static void mac_hex(const unsigned char *key, const struct buf *text, char hex[AUTH_HEX_MAX])
{
    unsigned char mac[AUTH_MAC_BYTES];
    auth_hmac(key, AUTH_MAC_BYTES, text->data, text->len, mac);
    format_hex(mac, sizeof mac, hex);
}

/* --- greetings -------------------------------------------------------------------------------- */

static void put_lines(const char *label, const struct auth_greeting *g, struct buf *out)
{
    const char *const lines[] = {label,          g->key_id,       g->client_node,
                                 g->client_boot, g->client_nonce, g->server_node,
                                 g->server_boot, g->server_nonce, g->session};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        buf_puts(out, lines[i] != NULL ? lines[i] : "");
        buf_putc(out, '\n');
    }
}

void auth_hello_proof(const unsigned char *secret, const struct auth_greeting *g,
                      char hex[AUTH_HEX_MAX])
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    put_lines(g->server_nonce != NULL ? "dfc-hello-2" : "dfc-hello-1", g, &text);
    mac_hex(secret, &text, hex);
}

void auth_welcome_proof(const unsigned char *secret, const struct auth_greeting *g,
                        char hex[AUTH_HEX_MAX])
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    put_lines("dfc-welcome-1", g, &text);
    mac_hex(secret, &text, hex);
}

void auth_session_key(const unsigned char *secret, const struct auth_greeting *g,
                      unsigned char out[AUTH_MAC_BYTES])
{
    _cleanup_(buf_done)
    struct buf salt = BUF_INIT;
    _cleanup_(buf_done)
    struct buf info = BUF_INIT;
    buf_puts(&salt, g->client_nonce);
    buf_puts(&salt, g->server_nonce);
    put_lines("dfc-session-1", g, &info);
    auth_hkdf(secret, AUTH_MAC_BYTES, salt.data, salt.len, info.data, info.len, out);
}

/* --- requests --------------------------------------------------------------------------------- */

void auth_request_text(const struct auth_request *r, struct buf *out)
{
    buf_printf(out, "dfc-request-1\n%s\n%llu\n%s\n%s\n%s\n%lld\n%s\n", r->session,
               (unsigned long long)r->counter, r->method, r->path, r->query, (long long)r->length,
               r->digest);
}

static bool header_counts(const char *name)
{
    return strncasecmp(name, "Dfc-", 4) == 0 && strcasecmp(name, "Dfc-Auth") != 0;
}

void auth_header_text(const char *name, const char *value, size_t value_len, struct buf *out)
{
    if (!header_counts(name))
        return;
    for (; *name != '\0'; name++)
        buf_putc(out, (char)tolower((unsigned char)*name));
    buf_puts(out, ": ");
    buf_append(out, value, value_len);
    buf_putc(out, '\n');
}

void auth_request_mac(const unsigned char *session_key, const struct buf *text,
                      char hex[AUTH_HEX_MAX])
{
    mac_hex(session_key, text, hex);
}

bool auth_same(const char *a, const char *b)
{
    size_t len = strlen(a);
    return strlen(b) == len && CRYPTO_memcmp(a, b, len) == 0;
}
