#include "proxy/primary/root.h"

#include <openssl/crypto.h>
#include <string.h>

#include "access/guard.h"
#include "access/proof_keys.h"
#include "access/seal.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "io/pool.h"
#include "proxy/primary/proxy.h"

static int write_file(const struct proxy *p, const char *access_key, const char *secret,
                      struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/root.json", p->params.dir);
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:s, s:s}", "endpoint", p->public_url,
                                           "access_key", access_key, "secret_key", secret);
    char *text = json_text(doc);
    int r = file_replace(path, text, strlen(text), 0600, err);
    OPENSSL_cleanse(text, strlen(text));
    free(text);
    if (r == 0)
        log_info("the first user is root", lstr("key_file", path));
    return r;
}

static int seal(const struct proxy *p, const char *id, const char *access_key, const char *secret,
                char sealed[static SEALED_MAX], struct error *err)
{
    struct proof_keys *keys = guard_keys(p->guard);
    int r = seal_secret(proof_keys_cluster(keys), id, access_key, secret, sealed, err);
    proof_keys_unref(keys);
    return r;
}

int root_make(struct proxy *p, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    char id[USER_ID_CHARS + 1], access_key[ACCESS_KEY_CHARS + 1], secret[SECRET_CHARS + 1];
    char sealed[SEALED_MAX];
    if (p->guard == NULL || s->access.user_count > 0)
        return 0;
    user_id_new(id);
    secret_new(access_key, secret);
    int r = seal(p, id, access_key, secret, sealed, err);
    if (r == 0)
        r = write_file(p, access_key, secret, err);
    OPENSSL_cleanse(secret, sizeof secret);
    if (r != 0)
        return r;
    const struct access_key key = {
        .access = access_key, .secret = sealed, .created_ms = clock_wall_ms()};
    _cleanup_json_ json_t *patch =
        json_pack("{s:s, s:s, s:[s]}", "name", "root", "kind", "person", "roles", "admin");
    const struct command cmd = {.kind = CMD_USER_ADD, .text = id, .patch = patch, .key = &key};
    return proxy_commit_wait(p, &cmd, err);
}

static void make_soon(void *arg)
{
    struct proxy *p = arg;
    struct error err = ERROR_INIT;
    if (proxy_is_primary(p) && root_make(p, &err) != 0)
        log_error("the first user is not made", lerr(&err));
}

void root_soon(struct proxy *p)
{
    struct error err = ERROR_INIT;
    if (p->guard != NULL && pool_submit(p->overhaul, make_soon, p, &err) != 0)
        log_error("the first user is not made", lerr(&err));
}
