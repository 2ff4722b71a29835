#include "access/seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "common/auth/mac.h"
#include "common/cleanup.h"
#include "common/parse.h"
#include "common/rng.h"

enum {
    NONCE_BYTES = 12,
    TAG_BYTES = 16,
    NONCE_HEX = 2 * NONCE_BYTES,
    BYTES_AT = CLUSTER_KEY_ID_CHARS + 1 + NONCE_HEX + 1, /* in the text */
};

_Static_assert(BYTES_AT + 2 * (SECRET_CHARS + TAG_BYTES) < SEALED_MAX, "a sealed secret fits");
DEFINE_CLEANUP(EVP_CIPHER_CTX, EVP_CIPHER_CTX_free);

/* --- new secrets ------------------------------------------------------------------------------ */

/* `alphabet` has `of` letters; bytes beyond the last multiple of that are drawn again. */
static void random_text(char *out, size_t len, const char *alphabet, unsigned of)
{
    const unsigned limit = 256 - 256 % of;
    for (size_t i = 0; i < len;) {
        unsigned char byte;
        random_bytes(&byte, 1);
        if (byte < limit)
            out[i++] = alphabet[byte % of];
    }
    out[len] = '\0';
}

void secret_new(char access_key[static ACCESS_KEY_CHARS + 1], char secret[static SECRET_CHARS + 1])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "abcdefghijklmnopqrstuvwxyz";
    memcpy(access_key, "DFC", 3);
    random_text(access_key + 3, ACCESS_KEY_CHARS - 3, letters, 36);
    random_text(secret, SECRET_CHARS, letters, 62);
}

void user_id_new(char id[static USER_ID_CHARS + 1])
{
    unsigned char bytes[USER_ID_CHARS / 2];
    random_bytes(bytes, sizeof bytes);
    format_hex(bytes, sizeof bytes, id);
}

/* --- AES-256-GCM ------------------------------------------------------------------------------ */

void seal_derive(const struct cluster_key *key, const char *info,
                 unsigned char out[static CLUSTER_SECRET_BYTES])
{
    auth_hkdf(key->secret, sizeof key->secret, "", 0, info, strlen(info), out);
}

/* A context with key, nonce and the associated data "user id:access key"; NULL: OpenSSL fails. */
static EVP_CIPHER_CTX *begin(const struct cluster_key *key, const char *user_id,
                             const char *access_key, const unsigned char *nonce, int seals)
{
    _cleanup_(EVP_CIPHER_CTX_freep)
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    unsigned char derived[CLUSTER_SECRET_BYTES];
    char with[USER_ID_CHARS + ACCESS_KEY_CHARS + 2];
    int len;
    snprintf(with, sizeof with, "%s:%s", user_id, access_key);
    seal_derive(key, "dfc-access-1", derived);
    bool ok = c != NULL &&
              EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, derived, nonce, seals) == 1 &&
              EVP_CipherUpdate(c, NULL, &len, (const unsigned char *)with, (int)strlen(with)) == 1;
    OPENSSL_cleanse(derived, sizeof derived);
    return ok ? steal(c) : NULL;
}

int seal_secret(const struct cluster_keys *keys, const char *user_id, const char *access_key,
                const char *secret, char sealed[static SEALED_MAX], struct error *err)
{
    unsigned char nonce[NONCE_BYTES];
    unsigned char bytes[SECRET_CHARS + TAG_BYTES];
    char hex[2 * sizeof bytes + 1];
    char nonce_hex[NONCE_HEX + 1];
    int len = 0;
    int rest = 0;
    if (keys->count == 0)
        return error_set(err, E_INVALID,
                         "secrets are sealed under the cluster key: start the daemon with "
                         "--cluster-key-file");
    if (strlen(secret) != SECRET_CHARS)
        return error_set(err, E_INVALID, "a secret key has %d characters", SECRET_CHARS);
    random_bytes(nonce, sizeof nonce);
    _cleanup_(EVP_CIPHER_CTX_freep)
    EVP_CIPHER_CTX *c = begin(&keys->keys[0], user_id, access_key, nonce, 1);
    if (c == NULL ||
        EVP_CipherUpdate(c, bytes, &len, (const unsigned char *)secret, SECRET_CHARS) != 1 ||
        EVP_CipherFinal_ex(c, bytes + len, &rest) != 1 ||
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, bytes + SECRET_CHARS) != 1)
        return error_set(err, E_INTERNAL, "AES-256-GCM of OpenSSL fails");
    format_hex(nonce, sizeof nonce, nonce_hex);
    format_hex(bytes, sizeof bytes, hex);
    snprintf(sealed, SEALED_MAX, "%s:%s:%s", keys->keys[0].id, nonce_hex, hex);
    return 0;
}

/* The cluster key that the text names; NULL: none of ours, or the text is no sealed secret. */
static const struct cluster_key *parse_sealed(const struct cluster_keys *keys, const char *sealed,
                                              unsigned char nonce[NONCE_BYTES],
                                              unsigned char bytes[SECRET_CHARS + TAG_BYTES])
{
    char id[CLUSTER_KEY_ID_CHARS + 1] = "";
    char nonce_hex[NONCE_HEX + 1] = "";
    if (strlen(sealed) != BYTES_AT + 2 * (SECRET_CHARS + TAG_BYTES) ||
        sealed[CLUSTER_KEY_ID_CHARS] != ':' || sealed[BYTES_AT - 1] != ':')
        return NULL;
    memcpy(id, sealed, CLUSTER_KEY_ID_CHARS);
    memcpy(nonce_hex, sealed + CLUSTER_KEY_ID_CHARS + 1, NONCE_HEX);
    if (parse_hex(nonce_hex, nonce, NONCE_BYTES, NULL) != 0 ||
        parse_hex(sealed + BYTES_AT, bytes, SECRET_CHARS + TAG_BYTES, NULL) != 0)
        return NULL;
    return cluster_keys_find(keys, id);
}

int seal_open(const struct cluster_keys *keys, const char *user_id, const char *access_key,
              const char *sealed, char secret[static SECRET_CHARS + 1], struct error *err)
{
    unsigned char nonce[NONCE_BYTES];
    unsigned char bytes[SECRET_CHARS + TAG_BYTES];
    int len = 0;
    int rest = 0;
    const struct cluster_key *key = parse_sealed(keys, sealed, nonce, bytes);
    if (key == NULL)
        return error_set(
            err, E_CORRUPT,
            "the secret of access key '%.20s' is not sealed by a cluster key that this "
            "node has",
            access_key);
    _cleanup_(EVP_CIPHER_CTX_freep)
    EVP_CIPHER_CTX *c = begin(key, user_id, access_key, nonce, 0);
    if (c == NULL || EVP_CipherUpdate(c, (unsigned char *)secret, &len, bytes, SECRET_CHARS) != 1 ||
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, bytes + SECRET_CHARS) != 1 ||
        EVP_CipherFinal_ex(c, (unsigned char *)secret + len, &rest) != 1) {
        OPENSSL_cleanse(secret, SECRET_CHARS + 1);
        return error_set(err, E_CORRUPT,
                         "the sealed secret of access key '%.20s' is damaged, or another user's",
                         access_key);
    }
    secret[SECRET_CHARS] = '\0';
    return 0;
}

bool seal_is_current(const struct cluster_keys *keys, const char *sealed)
{
    return keys->count > 0 && strncmp(sealed, keys->keys[0].id, CLUSTER_KEY_ID_CHARS) == 0;
}
