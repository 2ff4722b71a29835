#include "proxy/http/reseal.h"

#include <openssl/crypto.h>

#include "access/seal.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "io/pool.h"
#include "proxy/primary/proxy.h"

enum { BATCH = 128 }; /* keys of one change: its size is bounded in etcd */

struct tally {
    json_int_t resealed;
    json_int_t unreadable; /* sealed under a key that the file does not have */
};

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
static json_t *next_batch(struct proxy *p, const struct cluster_keys *keys, struct tally *t)
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

static int reseal_all(struct proxy *p, struct tally *t, struct error *err)
{
    struct cluster_keys keys;
    int r = 0;
    if (p->params.cluster_key_file[0] == '\0')
        return error_set(err, E_UNSUPPORTED, "proxy '%s' has no cluster key: nothing is sealed",
                         p->id);
    if ((r = cluster_keys_load(p->params.cluster_key_file, &keys, err)) != 0)
        return r;
    for (;;) {
        _cleanup_json_ json_t *patch = next_batch(p, &keys, t);
        const struct command cmd = {.kind = CMD_RESEAL, .patch = patch};
        if (json_object_size(patch) == 0)
            break;
        if ((r = proxy_commit_wait(p, &cmd, err)) != 0)
            break;
        t->resealed += (json_int_t)json_object_size(patch);
    }
    OPENSSL_cleanse(&keys, sizeof keys);
    return r;
}

/* In the overhaul thread. */
static void run(void *arg)
{
    struct http_request *req = arg;
    struct tally t = {0};
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(req));
    if (reseal_all(http_user(req), &t, &err) != 0) {
        proxy_reply_error(req, &err);
    } else {
        _cleanup_json_ json_t *doc =
            json_pack("{s:I, s:I}", "resealed", t.resealed, "unreadable", t.unreadable);
        http_reply_json(req, 200, doc);
    }
    log_set_request(NULL);
}

static void reseal_begin(struct http_request *req)
{
    const struct proxy *p = http_user(req);
    struct error err = ERROR_INIT;
    if (!proxy_passed_to_primary(req) && pool_submit(p->overhaul, run, req, &err) != 0)
        proxy_reply_error(req, &err);
}

const struct http_route reseal_routes[] = {
    {.name = "auth_reseal",
     .method = HTTP_POST,
     .pattern = "/v1/auth/reseal",
     .nets = NET_CONTROL,
     .changes = true,
     .admin = true,
     .right = RIGHT_CLUSTER_ADMIN,
     .begin = reseal_begin,
     .summary = "Seals the secrets of users under the first line of the cluster key's file. The "
                "line that sealed them before may be removed when none is unreadable.",
     .body = "",
     .reply = "`{\"resealed\", \"unreadable\"}`",
     .errors = "not_supported in_doubt overloaded"},
    {.name = NULL},
};
