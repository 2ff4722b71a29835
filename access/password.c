#include "access/password.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "common/rng.h"
#include "net/auth/auth.h"

enum { LOG2_N = 15, R = 8, P = 1, SALT_BYTES = 16, HASH_BYTES = 32 };

#define PREFIX "scrypt:15:8:1:"
enum { SALT_AT = sizeof PREFIX - 1, HASH_AT = SALT_AT + 2 * SALT_BYTES + 1 };

DEFINE_CLEANUP(EVP_KDF, EVP_KDF_free);
DEFINE_CLEANUP(EVP_KDF_CTX, EVP_KDF_CTX_free);

static bool scrypt(const char *password, const unsigned char salt[SALT_BYTES],
                   unsigned char hash[HASH_BYTES])
{
    uint64_t n = (uint64_t)1 << LOG2_N;
    uint32_t r = R;
    uint32_t p = P;
    _cleanup_(EVP_KDF_freep)
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "SCRYPT", NULL);
    _cleanup_(EVP_KDF_CTX_freep)
    EVP_KDF_CTX *c = kdf != NULL ? EVP_KDF_CTX_new(kdf) : NULL;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PASSWORD, (char *)password,
                                          strlen(password)),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (unsigned char *)salt, SALT_BYTES),
        OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &n),
        OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_R, &r),
        OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_P, &p),
        OSSL_PARAM_construct_end(),
    };
    return c != NULL && EVP_KDF_derive(c, hash, HASH_BYTES, params) == 1;
}

int password_hash(const char *password, char hash[static PASSWORD_HASH_MAX], struct error *err)
{
    unsigned char salt[SALT_BYTES];
    unsigned char bytes[HASH_BYTES];
    char salt_hex[2 * SALT_BYTES + 1];
    char hash_hex[2 * HASH_BYTES + 1];
    size_t len = strlen(password);
    if (len < PASSWORD_MIN || len > PASSWORD_MAX)
        return error_set(err, E_INVALID, "a password must have %d to %d bytes", PASSWORD_MIN,
                         PASSWORD_MAX);
    random_bytes(salt, sizeof salt);
    if (!scrypt(password, salt, bytes))
        return error_set(err, E_NOMEM, "scrypt of OpenSSL fails: it needs 32 MiB of memory");
    format_hex(salt, sizeof salt, salt_hex);
    format_hex(bytes, sizeof bytes, hash_hex);
    snprintf(hash, PASSWORD_HASH_MAX, "%s%s:%s", PREFIX, salt_hex, hash_hex);
    return 0;
}

/* False: the text is no hash of this form. */
static bool parse_hash(const char *text, unsigned char salt[SALT_BYTES],
                       unsigned char hash[HASH_BYTES])
{
    char salt_hex[2 * SALT_BYTES + 1] = "";
    if (strlen(text) != HASH_AT + 2 * HASH_BYTES || strncmp(text, PREFIX, SALT_AT) != 0 ||
        text[HASH_AT - 1] != ':')
        return false;
    memcpy(salt_hex, text + SALT_AT, 2 * SALT_BYTES);
    return parse_hex(salt_hex, salt, SALT_BYTES, NULL) == 0 &&
           parse_hex(text + HASH_AT, hash, HASH_BYTES, NULL) == 0;
}

bool password_matches(const char *password, const char *hash)
{
    unsigned char salt[SALT_BYTES] = {0};
    unsigned char want[HASH_BYTES] = {0};
    unsigned char got[HASH_BYTES] = {0};
    bool known = parse_hash(hash, salt, want);
    bool computed = strlen(password) <= PASSWORD_MAX && scrypt(password, salt, got);
    return computed && known && CRYPTO_memcmp(got, want, sizeof got) == 0;
}

void password_tag(const char *hash, char tag[static PASSWORD_TAG_CHARS + 1])
{
    bool is_hash = strncmp(hash, PREFIX, SALT_AT) == 0;
    snprintf(tag, PASSWORD_TAG_CHARS + 1, "%s%.*s", is_hash ? "p" : "", PASSWORD_TAG_CHARS - 1,
             is_hash ? hash + SALT_AT : "");
}

bool password_peer_is_local(const char *peer)
{
    char host[64];
    bool bracketed = peer[0] == '[';
    size_t len = strcspn(peer + bracketed, bracketed ? "]" : ":");
    if (len >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)len, peer + bracketed);
    return auth_is_loopback(host);
}

bool password_opens(const struct user *u, const char *password)
{
    bool counts = u != NULL && u->enabled;
    return password_matches(password, counts ? u->password : "") && counts;
}
