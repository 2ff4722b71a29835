#include "proxy/primary/root.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>
#include <unistd.h>

#include "access/audit.h"
#include "access/guard.h"
#include "access/proof_keys.h"
#include "access/seal.h"
#include "access/witness.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "io/pool.h"
#include "proxy/primary/proxy.h"
#include "access/root_key.h"

static bool has_file(const struct proxy_params *params)
{
    return params->root_key_file[0] != '\0';
}

int root_params_check(const struct proxy_params *params, struct error *err)
{
    struct root_key key;
    if (!has_file(params) && !params->reset_root)
        return 0;
    if (!params->public_auth)
        return error_set(err, E_INVALID, "%s needs --public-auth: there is no user root without it",
                         params->reset_root ? "--reset-root" : "--root-key-file");
    if (params->reset_root && (params->join[0] != '\0' || !params->electable))
        return error_set(err, E_INVALID,
                         "--reset-root is for the primary, or a proxy that may be elected");
    int r = has_file(params) ? root_key_load(params->root_key_file, &key, err) : 0;
    root_key_wipe(&key);
    return r;
}

/* --- the key ---------------------------------------------------------------------------------- */

static int write_file(const struct proxy *p, const struct root_key *key, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/root.json", p->params.dir);
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:s, s:s}", "endpoint", p->public_url,
                                           "access_key", key->access, "secret_key", key->secret);
    char *text = json_text(doc);
    int r = file_replace(path, text, strlen(text), 0600, err);
    OPENSSL_cleanse(text, strlen(text));
    free(text);
    if (r == 0)
        log_info("the keys of root are in a file", lstr("key_file", path));
    return r;
}

/* Its keys are good no longer. */
static int remove_file(const struct proxy *p, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/root.json", p->params.dir);
    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    return error_errno(err, errno, "remove '%s'", path);
}

static int take_key(const struct proxy *p, struct root_key *key, struct error *err)
{
    if (has_file(&p->params))
        return root_key_load(p->params.root_key_file, key, err);
    secret_new(key->access, key->secret);
    return 0;
}

/* The user of the state who has this key and this secret; NULL: none. */
static const struct user *holder(const struct proxy *p, const struct access *a,
                                 const struct root_key *key)
{
    char secret[SECRET_CHARS + 1] = "";
    const struct key_owner *owner = access_key_owner(a, key->access);
    if (owner == NULL)
        return NULL;
    struct proof_keys *keys = guard_keys(p->guard);
    int r = seal_open(proof_keys_cluster(keys), owner->user->id, key->access, owner->key->secret,
                      secret, NULL);
    proof_keys_unref(keys);
    bool same = r == 0 && strcmp(secret, key->secret) == 0;
    OPENSSL_cleanse(secret, sizeof secret);
    return same ? owner->user : NULL;
}

static bool is_root(const struct user *u)
{
    return u != NULL && strcmp(u->name, USER_ROOT) == 0;
}

/* --- root gets it ----------------------------------------------------------------------------- */

static void tell(struct proxy *p, const struct root_key *key)
{
    const struct audit_line line = {.user = USER_ROOT,
                                    .key = key->access,
                                    .via = "start",
                                    .op = p->params.reset_root ? "root_reset" : "root_made",
                                    .status = 200,
                                    .changes = true};
    log_audit("root has a new key", lstr("access_key", key->access),
              lbool("reset", p->params.reset_root));
    witness_tell(p->witness, &line);
}

static int commit(struct proxy *p, const struct root_key *key, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct user *root = access_user(&s->access, USER_ROOT);
    char id[USER_ID_CHARS + 1], sealed[SEALED_MAX];
    user_id_new(id);
    struct proof_keys *keys = guard_keys(p->guard);
    int r = seal_secret(proof_keys_cluster(keys), root != NULL ? root->id : id, key->access,
                        key->secret, sealed, err);
    proof_keys_unref(keys);
    if (r != 0)
        return r;
    const struct access_key sealed_key = {
        .access = key->access, .secret = sealed, .created_ms = clock_wall_ms()};
    const struct command cmd = {
        .kind = CMD_ROOT_KEY, .text = id, .key = &sealed_key, .wall_ms = clock_wall_ms()};
    return proxy_commit_wait(p, &cmd, err);
}

static int give(struct proxy *p, const struct root_key *key, struct error *err)
{
    bool from_file = has_file(&p->params);
    int r = from_file ? 0 : write_file(p, key, err);
    if (r == 0)
        r = commit(p, key, err);
    if (r == 0 && from_file)
        r = remove_file(p, err);
    if (r == 0)
        tell(p, key);
    return r;
}

/* A reset that finds root as it would leave it has been done by an earlier start. */
static bool is_done(const struct proxy *p, const struct access *a, const struct root_key *key)
{
    const struct user *u = holder(p, a, key);
    return is_root(u) && u->enabled && u->key_count == 1 && access_is_admin(a, u);
}

/* --- when ------------------------------------------------------------------------------------- */

static void compare(const struct proxy *p, const struct access *a, const struct root_key *key)
{
    if (is_root(holder(p, a, key)))
        return;
    log_warn("root does not have the key of --root-key-file: start this proxy once with "
             "--reset-root to give root this key, or start it without the file",
             lstr("file", p->params.root_key_file));
}

static int settle(struct proxy *p, struct root_key *key, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    bool resets = p->params.reset_root && !p->root_is_reset;
    bool first = s->access.user_count == 0;
    if (!resets && !first && !has_file(&p->params))
        return 0;
    int r = take_key(p, key, err);
    if (r != 0)
        return r;
    if (!resets && !first)
        compare(p, &s->access, key);
    else if (!is_done(p, &s->access, key))
        r = give(p, key, err);
    if (r == 0 && resets) {
        p->root_is_reset = true;
        log_warn("root was reset: start this proxy without --reset-root from now on");
    }
    return r;
}

int root_settle(struct proxy *p, struct error *err)
{
    struct root_key key;
    if (p->guard == NULL)
        return 0;
    int r = settle(p, &key, err);
    root_key_wipe(&key);
    return r;
}

static void settle_soon(void *arg)
{
    struct proxy *p = arg;
    struct error err = ERROR_INIT;
    if (proxy_is_primary(p) && root_settle(p, &err) != 0)
        log_error("root has no new key", lerr(&err));
}

void root_soon(struct proxy *p)
{
    struct error err = ERROR_INIT;
    if (p->guard != NULL && pool_submit(p->overhaul, settle_soon, p, &err) != 0)
        log_error("root has no new key", lerr(&err));
}
