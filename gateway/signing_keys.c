#include "gateway/signing_keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"

/* A name is a digest, since a sealed secret is long. */
struct place {
    unsigned char name[SHA256_DIGEST_LENGTH]; /* zeros: empty */
    unsigned char key[AUTH_MAC_BYTES];
};

struct signing_keys {
    pthread_mutex_t lock;
    struct place places[SIGNING_KEYS_MAX];
};

struct signing_keys *signing_keys_new(void)
{
    struct signing_keys *k = xcalloc(1, sizeof *k);
    pthread_mutex_init(&k->lock, NULL);
    return k;
}

void signing_keys_free(struct signing_keys *k)
{
    if (k == NULL)
        return;
    pthread_mutex_destroy(&k->lock);
    OPENSSL_cleanse(k->places, sizeof k->places);
    free(k);
}

static void name_of(const char *access_key, const char *sealed, const char *day,
                    unsigned char name[static SHA256_DIGEST_LENGTH])
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_printf(&text, "%s\n%s\n%s", access_key, sealed, day);
    SHA256((const unsigned char *)text.data, text.len, name);
}

static struct place *place_of(struct signing_keys *k, const unsigned char *name)
{
    return &k->places[(name[0] << 8 | name[1]) % SIGNING_KEYS_MAX];
}

bool signing_keys_find(struct signing_keys *k, const char *access_key, const char *sealed,
                       const char *day, unsigned char key[static AUTH_MAC_BYTES])
{
    unsigned char name[SHA256_DIGEST_LENGTH];
    name_of(access_key, sealed, day, name);
    pthread_mutex_lock(&k->lock);
    const struct place *p = place_of(k, name);
    bool found = memcmp(p->name, name, sizeof name) == 0;
    if (found)
        memcpy(key, p->key, AUTH_MAC_BYTES);
    pthread_mutex_unlock(&k->lock);
    return found;
}

void signing_keys_put(struct signing_keys *k, const char *access_key, const char *sealed,
                      const char *day, const unsigned char key[static AUTH_MAC_BYTES])
{
    unsigned char name[SHA256_DIGEST_LENGTH];
    name_of(access_key, sealed, day, name);
    pthread_mutex_lock(&k->lock);
    struct place *p = place_of(k, name);
    memcpy(p->name, name, sizeof name);
    memcpy(p->key, key, AUTH_MAC_BYTES);
    pthread_mutex_unlock(&k->lock);
}
