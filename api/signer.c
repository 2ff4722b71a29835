#include "api/signer.h"

#include <openssl/crypto.h>
#include <pthread.h>

#include "api/failure.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/rng.h"

struct signer {
    char *key_file; /* "": none */
    char boot[16];
    pthread_mutex_t lock; /* of all that follows; nothing is called with it held */
    bool loaded;
    struct cluster_keys keys;
    struct signer_session *sessions;
};

struct signer *signer_new(const char *key_file)
{
    struct signer *s = xcalloc(1, sizeof *s);
    s->key_file = xstrdup(key_file != NULL ? key_file : "");
    random_id("", s->boot);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

struct signer_session *signer_session_new(const char *origin)
{
    struct signer_session *x = xcalloc(1, sizeof *x);
    x->origin = xstrdup(origin);
    return x;
}

void signer_session_free(struct signer_session *x)
{
    OPENSSL_cleanse(x->key, sizeof x->key);
    free(x->origin);
    free(x);
}

void signer_free(struct signer *s)
{
    if (s == NULL)
        return;
    for (struct signer_session *x; (x = s->sessions) != NULL;) {
        s->sessions = x->next;
        signer_session_free(x);
    }
    OPENSSL_cleanse(&s->keys, sizeof s->keys);
    pthread_mutex_destroy(&s->lock);
    free(s->key_file);
    free(s);
}

const char *signer_key_file(const struct signer *s)
{
    return s->key_file;
}

bool signer_has_key(const struct signer *s)
{
    return s->key_file[0] != '\0';
}

struct auth_caller signer_caller(const struct signer *s)
{
    return (struct auth_caller){.key = &s->keys.keys[0], .node = "client", .boot = s->boot};
}

int signer_load(struct signer *s, struct dfc_error *err)
{
    struct cluster_keys keys = {0};
    struct error e = ERROR_INIT;
    pthread_mutex_lock(&s->lock);
    bool loaded = s->loaded;
    pthread_mutex_unlock(&s->lock);
    if (loaded)
        return DFC_OK;
    if (cluster_keys_load(s->key_file, &keys, &e) != 0)
        return failure_common(err, DFC_LOCAL, &e);
    pthread_mutex_lock(&s->lock);
    if (!s->loaded)
        s->keys = keys;
    s->loaded = true; /* from here on the keys stay */
    pthread_mutex_unlock(&s->lock);
    OPENSSL_cleanse(&keys, sizeof keys);
    return DFC_OK;
}

/* With the lock held. */
static struct signer_session **session_place(struct signer *s, const char *origin)
{
    struct signer_session **at = &s->sessions;
    while (*at != NULL && strcmp((*at)->origin, origin) != 0)
        at = &(*at)->next;
    return at;
}

static bool is_with(const struct signer_session *x, const char *node)
{
    return node == NULL || x->unsigned_calls || strcmp(x->node, node) == 0;
}

bool signer_take(struct signer *s, const char *origin, const char *node, struct signer_pen *pen)
{
    pthread_mutex_lock(&s->lock);
    struct signer_session *x = *session_place(s, origin);
    bool found = x != NULL && is_with(x, node);
    if (found) {
        pen->signs = !x->unsigned_calls;
        pen->claim.counter = ++x->counter;
        memcpy(pen->claim.session, x->id, sizeof x->id);
        memcpy(pen->key, x->key, sizeof x->key);
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

void signer_drop(struct signer *s, const char *origin, const char *id)
{
    pthread_mutex_lock(&s->lock);
    struct signer_session **at = session_place(s, origin);
    struct signer_session *x = *at;
    if (x != NULL && strcmp(x->id, id) == 0)
        *at = x->next;
    else
        x = NULL;
    pthread_mutex_unlock(&s->lock);
    if (x != NULL)
        signer_session_free(x);
}

void signer_keep(struct signer *s, struct signer_session *x)
{
    pthread_mutex_lock(&s->lock);
    struct signer_session **at = session_place(s, x->origin);
    struct signer_session *old = *at; /* another thread's */
    x->next = old != NULL ? old->next : NULL;
    *at = x;
    pthread_mutex_unlock(&s->lock);
    if (old != NULL)
        signer_session_free(old);
}
