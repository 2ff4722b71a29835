#include "proxy/primary/reseal.h"

#include <openssl/crypto.h>

#include "access/guard.h"
#include "access/proof_keys.h"
#include "access/seal.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "io/pool.h"
#include "proxy/primary/proxy.h"

enum { BATCH = 128 }; /* keys of one change: its size is bounded in etcd */

int sealing_keys(const struct proxy *p, struct cluster_keys *out, struct error *err)
{
    if (p->params.cluster_key_file[0] == '\0')
        return error_set(err, E_UNSUPPORTED,
                         "proxy '%s' has no cluster key, which secrets are sealed under: start all "
                         "nodes with --cluster-key-file",
                         p->id);
    if (p->guard == NULL)
        return cluster_keys_load(p->params.cluster_key_file, out, err);
    struct proof_keys *keys = guard_keys(p->guard);
    *out = *proof_keys_cluster(keys);
    proof_keys_unref(keys);
    return 0;
}

/* Adds the secret, sealed anew, to `patch`. */
static int reseal_key(const struct cluster_keys *keys, const struct key_owner *k, json_t *patch)
{
    char secret[SECRET_CHARS + 1];
    char sealed[SEALED_MAX];
    int r = seal_open(keys, k->user->id, k->access, k->key->secret, secret, NULL);
    if (r != 0)
        return r;
    r = seal_secret(keys, k->user->id, k->access, secret, sealed, NULL);
    OPENSSL_cleanse(secret, sizeof secret);
    if (r == 0)
        json_object_set_new(patch, k->access, json_string(sealed));
    return r;
}

/* Of the next secrets that need it; the patch is empty when there are none. */
static json_t *next_batch(struct proxy *p, const struct cluster_keys *keys, struct reseal_tally *t)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    json_t *patch = json_object();
    t->unreadable = 0;
    for (size_t i = 0; i < s->access.key_count && json_object_size(patch) < BATCH; i++) {
        const struct key_owner *k = &s->access.by_key[i];
        if (!seal_is_current(keys, k->key->secret) && reseal_key(keys, k, patch) != 0)
            t->unreadable++;
    }
    return patch;
}

static int reseal_by(struct proxy *p, const struct cluster_keys *keys, struct reseal_tally *t,
                     struct error *err)
{
    for (;;) {
        _cleanup_json_ json_t *patch = next_batch(p, keys, t);
        const struct command cmd = {.kind = CMD_RESEAL, .patch = patch};
        if (json_object_size(patch) == 0)
            return 0;
        int r = proxy_commit_wait(p, &cmd, err);
        if (r != 0)
            return r;
        t->resealed += (json_int_t)json_object_size(patch);
    }
}

int reseal_all(struct proxy *p, struct reseal_tally *t, struct error *err)
{
    struct cluster_keys keys;
    int r = sealing_keys(p, &keys, err);
    if (r == 0)
        r = reseal_by(p, &keys, t, err);
    OPENSSL_cleanse(&keys, sizeof keys);
    return r;
}

static void run(void *arg)
{
    struct proxy *p = arg;
    struct reseal_tally t = {0};
    struct error err = ERROR_INIT;
    if (!proxy_is_primary(p))
        return;
    if (reseal_all(p, &t, &err) != 0)
        log_warn("secrets of users not sealed anew", lerr(&err));
    if (t.resealed > 0)
        log_info("secrets of users sealed under the new cluster key", li64("count", t.resealed));
    if (t.unreadable > 0)
        log_error("secrets of users are sealed under a key that this proxy does not have",
                  li64("count", t.unreadable));
}

void reseal_soon(struct proxy *p)
{
    struct error err = ERROR_INIT;
    if (p->guard != NULL && pool_submit(p->overhaul, run, p, &err) != 0)
        log_warn("secrets of users not sealed anew", lerr(&err));
}

json_int_t reseal_left(const struct proxy *p, const struct cluster_state *s)
{
    json_int_t left = 0;
    if (p->guard == NULL)
        return 0;
    struct proof_keys *keys = guard_keys(p->guard);
    for (size_t i = 0; i < s->access.key_count; i++)
        left += !seal_is_current(proof_keys_cluster(keys), s->access.by_key[i].key->secret);
    proof_keys_unref(keys);
    return left;
}
