#include "access/proof_keys.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <string.h>

#include "common/mem.h"
#include "common/parse.h"

enum { BLOCK = 64 }; /* of SHA-256 */

struct mac_key {
    EVP_MD_CTX *inner, *outer; /* fed with one block */
};

struct proof_keys {
    atomic_uint refs;
    struct cluster_keys cluster;
    struct proof_key keys[CLUSTER_KEYS_MAX];
};

/* --- one key ---------------------------------------------------------------------------------- */

/* OpenSSL fails here when memory is out, which ends the program as everywhere (common/mem.h). */
static void must(int ok)
{
    assert(ok == 1);
    (void)ok;
}

static EVP_MD_CTX *fed(const unsigned char key[AUTH_MAC_BYTES], unsigned char pad)
{
    unsigned char block[BLOCK];
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    assert(c != NULL);
    memset(block, pad, sizeof block);
    for (size_t i = 0; i < AUTH_MAC_BYTES; i++)
        block[i] ^= key[i];
    must(EVP_DigestInit_ex(c, EVP_sha256(), NULL));
    must(EVP_DigestUpdate(c, block, sizeof block));
    OPENSSL_cleanse(block, sizeof block);
    return c;
}

static struct mac_key *mac_key_new(const struct cluster_key *from, const char *info)
{
    unsigned char key[CLUSTER_SECRET_BYTES];
    struct mac_key *k = xcalloc(1, sizeof *k);
    auth_hkdf(from->secret, sizeof from->secret, NULL, 0, info, strlen(info), key);
    k->inner = fed(key, 0x36);
    k->outer = fed(key, 0x5c);
    OPENSSL_cleanse(key, sizeof key);
    return k;
}

static void mac_key_free(struct mac_key *k)
{
    EVP_MD_CTX_free(k->inner);
    EVP_MD_CTX_free(k->outer);
    free(k);
}

void mac_key_sum(const struct mac_key *k, const void *data, size_t len,
                 unsigned char out[static AUTH_MAC_BYTES])
{
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    assert(c != NULL);
    must(EVP_MD_CTX_copy_ex(c, k->inner));
    must(EVP_DigestUpdate(c, data, len));
    must(EVP_DigestFinal_ex(c, out, NULL));
    must(EVP_MD_CTX_copy_ex(c, k->outer));
    must(EVP_DigestUpdate(c, out, AUTH_MAC_BYTES));
    must(EVP_DigestFinal_ex(c, out, NULL));
    EVP_MD_CTX_free(c);
}

/* --- all of them ------------------------------------------------------------------------------ */

struct proof_keys *proof_keys_new(const struct cluster_keys *keys)
{
    assert(keys->count > 0);
    struct proof_keys *k = xcalloc(1, sizeof *k);
    atomic_init(&k->refs, 1);
    k->cluster = *keys;
    for (size_t i = 0; i < keys->count; i++) {
        must(parse_hex(keys->keys[i].id, k->keys[i].id, PROOF_KEY_ID_BYTES, NULL) == 0);
        k->keys[i].token = mac_key_new(&keys->keys[i], "dfc-token-1");
        k->keys[i].redirect = mac_key_new(&keys->keys[i], "dfc-redirect-1");
        k->keys[i].url = mac_key_new(&keys->keys[i], "dfc-url-1");
    }
    return k;
}

struct proof_keys *proof_keys_ref(struct proof_keys *k)
{
    atomic_fetch_add_explicit(&k->refs, 1, memory_order_relaxed);
    return k;
}

void proof_keys_unref(struct proof_keys *k)
{
    if (k == NULL || atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < k->cluster.count; i++) {
        mac_key_free(k->keys[i].token);
        mac_key_free(k->keys[i].redirect);
        mac_key_free(k->keys[i].url);
    }
    OPENSSL_cleanse(&k->cluster, sizeof k->cluster);
    free(k);
}

const struct cluster_keys *proof_keys_cluster(const struct proof_keys *k)
{
    return &k->cluster;
}

const struct proof_key *proof_keys_own(const struct proof_keys *k)
{
    return &k->keys[0];
}

const struct proof_key *proof_keys_find(const struct proof_keys *k, const unsigned char *id)
{
    for (size_t i = 0; i < k->cluster.count; i++) {
        if (memcmp(k->keys[i].id, id, PROOF_KEY_ID_BYTES) == 0)
            return &k->keys[i];
    }
    return NULL;
}
