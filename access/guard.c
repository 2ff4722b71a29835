#include "access/guard.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "access/decide.h"
#include "access/password.h"
#include "access/rates.h"
#include "access/redirect_proof.h"
#include "access/seal.h"
#include "access/signed_url.h"
#include "access/token.h"
#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"

struct guard {
    struct http_guard hook;
    struct state_holder *state;
    struct rates *rates;
    uint64_t redirect_ttl_ms;
    pthread_rwlock_t lock; /* of the pointer */
    struct proof_keys *keys;
};

enum via { VIA_NOTHING, VIA_TOKEN, VIA_REDIRECT, VIA_URL, VIA_SIGNATURE };

/* http_caller(): of the request's arena. */
struct caller {
    struct guard *guard;
    const struct http_request *req;
    struct access_rate limit;          /* the user's; 0: none … */
    uint64_t taken;                    /* … and the bytes that it has taken */
    const struct cluster_state *state; /* a reference, dropped when the request ends */
    const struct user *user;           /* the state's; NULL: anonymous */
    enum via via;
    char access[ACCESS_KEY_CHARS + 1];      /* of the token: what it was got with; "" */
    char token[2 * TOKEN_RANDOM_BYTES + 1]; /* or signed URL: which; "" */
    const char *claimed;                    /* by a login; NULL: it is none */
    bool asked;
    struct access_decision last; /* the answer */
};

/* --- the keys --------------------------------------------------------------------------------- */

static int load_keys(const char *key_file, struct proof_keys **out, struct error *err)
{
    struct cluster_keys keys = {0};
    int code = cluster_keys_load(key_file, &keys, err);
    if (code == 0)
        *out = proof_keys_new(&keys);
    OPENSSL_cleanse(&keys, sizeof keys);
    return code;
}

struct proof_keys *guard_keys(struct guard *g)
{
    pthread_rwlock_rdlock(&g->lock);
    struct proof_keys *keys = proof_keys_ref(g->keys);
    pthread_rwlock_unlock(&g->lock);
    return keys;
}

int guard_reload(struct guard *g, const char *key_file, struct error *err)
{
    struct proof_keys *keys = NULL;
    int code = load_keys(key_file, &keys, err);
    if (code != 0)
        return code;
    pthread_rwlock_wrlock(&g->lock);
    struct proof_keys *old = g->keys;
    g->keys = keys;
    pthread_rwlock_unlock(&g->lock);
    proof_keys_unref(old);
    return 0;
}

/* --- who asks --------------------------------------------------------------------------------- */

/* 401 and how to do better.  `word` is for programs. */
static int unproven(struct http_request *req, const char *word, const char *why, struct error *err)
{
    char challenge[64];
    snprintf(challenge, sizeof challenge, "Bearer realm=\"dfc\", error=\"%s\"", word);
    http_reply_header(req, "WWW-Authenticate", challenge);
    return error_set(err, E_UNAUTHORIZED, "%s", why);
}

static int find_user(struct http_request *req, struct caller *c, const char *id, struct error *err)
{
    c->user = access_user_by_id(&c->state->access, id);
    if (c->user == NULL || !c->user->enabled)
        return unproven(req, "invalid", "the user of this proof is disabled, or exists no longer",
                        err);
    http_set_actor(req, c->user->id, c->user->name);
    return 0;
}

/* A token is good for as long as what it was got with: the access key, or the password. */
static bool is_withdrawn(const struct caller *c, const struct token *t)
{
    if ((int64_t)t->issued_ms < c->user->tokens_after_ms)
        return true;
    const struct key_owner *o = access_key_owner(&c->state->access, t->access);
    if (o != NULL && o->user == c->user && access_key_is_in_force(o->key, clock_wall_ms()))
        return false;
    char tag[PASSWORD_TAG_CHARS + 1];
    password_tag(c->user->password, tag);
    return strcmp(tag, t->access) != 0;
}

/* Of a token or signed URL that is valid. */
static int take_fields(struct http_request *req, struct caller *c, enum via via,
                       const struct token *t, struct error *err)
{
    int code = find_user(req, c, t->user, err);
    if (code == 0 && is_withdrawn(c, t))
        return unproven(req, "expired", "the token was withdrawn; log in again", err);
    c->via = via;
    static_assert(sizeof c->access == sizeof t->access, "the same text");
    memcpy(c->access, t->access, sizeof c->access);
    format_hex(t->random, sizeof t->random, c->token);
    return code;
}

static int take_token(struct http_request *req, struct caller *c, const char *text,
                      struct error *err)
{
    struct token t;
    struct proof_keys *keys = guard_keys(c->guard);
    enum proof_verdict v = token_check(keys, text, (uint64_t)clock_wall_ms(), &t);
    proof_keys_unref(keys);
    if (v == PROOF_INVALID)
        return unproven(req, "invalid", "the token is none of this cluster; log in again", err);
    if (v == PROOF_EXPIRED)
        return unproven(req, "expired", "the token has expired; log in again", err);
    return take_fields(req, c, VIA_TOKEN, &t, err);
}

static int take_authorization(struct http_request *req, struct caller *c, const char *header,
                              struct error *err)
{
    static const char scheme[] = "Bearer ";
    size_t len = sizeof scheme - 1;
    if (strncasecmp(header, scheme, len) != 0)
        return unproven(req, "invalid", "the Authorization header has no bearer token", err);
    return take_token(req, c, header + len + strspn(header + len, " "), err);
}

static void call_of(const struct http_request *req, uint64_t bucket_id, const char *new_name,
                    struct redirect_call *out)
{
    const char *signs = http_route(req) != NULL ? http_route(req)->signs : NULL;
    const char *method = signs != NULL ? signs : http_method_name(http_method(req));
    const char *list = http_query(req, "members") != NULL ? "" : NULL;
    bool reads = http_method(req) == HTTP_GET || http_method(req) == HTTP_HEAD;
    *out = (struct redirect_call){.reads = signs == NULL && reads,
                                  .method = method,
                                  .bucket_id = bucket_id,
                                  .object = http_object(req),
                                  .offset = http_query(req, "offset"),
                                  .length = http_query(req, "length"),
                                  .range = http_header(req, "Range"),
                                  .new_name = new_name,
                                  .member = list != NULL ? list : http_query(req, "member")};
}

/* The bucket's id is the one that the redirect names; the call is then refused where the bucket has
 * another one (target/node/admit.h). */
static enum proof_verdict check_redirect(const struct http_request *req, const struct caller *c,
                                         const char *text, char user[TOKEN_USER_CHARS + 1])
{
    struct redirect_call call;
    uint64_t bucket_id;
    const char *id = http_query(req, "dfcb");
    if (http_object(req) == NULL || id == NULL || parse_u64(id, &bucket_id, NULL) != 0)
        return PROOF_INVALID;
    call_of(req, bucket_id, http_query(req, "dfcn"), &call);
    struct proof_keys *keys = guard_keys(c->guard);
    enum proof_verdict v = redirect_proof_check(keys, text, (uint64_t)clock_wall_ms(), &call, user);
    proof_keys_unref(keys);
    return v;
}

static int take_redirect(struct http_request *req, struct caller *c, enum proof_verdict v,
                         const char *user, struct error *err)
{
    if (v == PROOF_INVALID)
        return error_set(err, E_ACCESS_DENIED, "the proof of the redirect is not for this call");
    if (v == PROOF_EXPIRED) {
        unproven(req, "expired", "", err);
        return error_set(err, E_PROOF_EXPIRED, "the redirect has expired; ask a proxy again");
    }
    c->via = VIA_REDIRECT;
    return find_user(req, c, user, err);
}

/* The bucket is the one that has the name now. */
static enum proof_verdict check_url(const struct http_request *req, const struct caller *c,
                                    const char *text, struct token *t)
{
    struct redirect_call call;
    const char *name = http_path_param(req, "bucket");
    const struct bucket *b = name != NULL ? bmd_bucket(&c->state->bmd, name) : NULL;
    if (b == NULL)
        return PROOF_INVALID;
    call_of(req, b->id, NULL, &call);
    struct proof_keys *keys = guard_keys(c->guard);
    enum proof_verdict v = signed_url_check(keys, text, (uint64_t)clock_wall_ms(), &call, t);
    proof_keys_unref(keys);
    return v;
}

static int take_url(struct http_request *req, struct caller *c, const char *text, struct error *err)
{
    struct token t;
    enum proof_verdict v = check_url(req, c, text, &t);
    if (v == PROOF_VALID)
        return take_fields(req, c, VIA_URL, &t, err);
    if (v == PROOF_INVALID)
        return error_set(err, E_ACCESS_DENIED, "the signed URL is not for this call");
    unproven(req, "expired", "", err);
    return error_set(err, E_PROOF_EXPIRED, "the signed URL has expired; ask for another one");
}

/* Of a caller that follows a redirect with its token, too, the proxy's decision counts: it may have
 * heard of a new bucket or grant before this node. */
static int identify(struct http_request *req, struct caller *c, struct error *err)
{
    char user[TOKEN_USER_CHARS + 1];
    const char *header = http_header(req, "Authorization");
    const char *url = http_query(req, "dfcu");
    const char *redirect = http_query(req, "dfca");
    enum proof_verdict v =
        redirect != NULL ? check_redirect(req, c, redirect, user) : PROOF_INVALID;
    if (header != NULL && v != PROOF_VALID)
        return take_authorization(req, c, header, err);
    if (url != NULL)
        return take_url(req, c, url, err);
    return redirect != NULL ? take_redirect(req, c, v, user, err) : 0;
}

/* --- may they --------------------------------------------------------------------------------- */

static struct access_decision decide(const struct caller *c, enum right right, const char *bucket,
                                     const char *key, struct access_question *q)
{
    const struct bucket *b = bucket != NULL ? bmd_bucket(&c->state->bmd, bucket) : NULL;
    *q = (struct access_question){.right = right,
                                  .bucket = bucket,
                                  .owner = b != NULL ? b->owner : NULL,
                                  .key = key,
                                  .key_len = key != NULL ? strlen(key) : 0};
    return access_decide(&c->state->access, c->user, q);
}

/* Decides, for the audit log, too. */
static bool note(struct caller *c, enum right right, const char *bucket, const char *key,
                 struct access_question *q)
{
    c->last = decide(c, right, bucket, key, q);
    c->asked = true;
    return c->last.allowed;
}

static int ask(struct http_request *req, struct caller *c, enum right right, const char *bucket,
               const char *key, struct error *err)
{
    struct access_question q;
    if (note(c, right, bucket, key, &q))
        return 0;
    if (c->via == VIA_NOTHING)
        return unproven(req, "missing", "the call needs a token: log in (dfcctl login)", err);
    return access_deny(c->user, &q, err);
}

static bool takes(const struct http_route *route, const char *parameter)
{
    for (const struct http_parameter *p = route->query; p != NULL && p->name != NULL; p++) {
        if (strcmp(p->name, parameter) == 0)
            return true;
    }
    return false;
}

/* A list is for the keys with the prefix that it asks for. */
static const char *key_of(const struct http_request *req)
{
    if (!takes(http_route(req), "prefix"))
        return http_object(req);
    const char *prefix = http_query(req, "prefix");
    return prefix != NULL ? prefix : "";
}

/* A redirect proof is a proxy's decision about this very call. */
static int judge(struct http_request *req, struct caller *c, struct error *err)
{
    const struct http_route *route = http_route(req);
    enum right right = route != NULL ? route->right : RIGHT_ANY;
    if (c->via == VIA_REDIRECT)
        return 0;
    if (right_is_of_cluster(right))
        return ask(req, c, right, NULL, NULL, err);
    return ask(req, c, right, http_path_param(req, "bucket"), key_of(req), err);
}

/* --- how often -------------------------------------------------------------------------------- */

/* Everybody who proves nothing shares one rate. */
static const char *rate_id(const struct caller *c)
{
    return c->user != NULL ? c->user->id : USER_ANONYMOUS_ID;
}

static int take_turn(struct http_request *req, struct caller *c, struct error *err)
{
    const struct access *doc = &c->state->access;
    const struct user *u = c->user != NULL ? c->user : access_user(doc, USER_ANONYMOUS);
    char seconds[24];
    if (u == NULL)
        return 0;
    c->limit = access_rate_of(doc, u);
    uint64_t wait_ms = rates_take_request(c->guard->rates, rate_id(c), &c->limit, clock_ms());
    if (wait_ms == 0)
        return 0;
    snprintf(seconds, sizeof seconds, "%llu", (unsigned long long)(wait_ms + 999) / 1000);
    http_reply_header(req, "Retry-After", seconds);
    return error_set(err, E_RATE_LIMITED, "user '%s' may ask this node again in %llu ms", u->name,
                     (unsigned long long)wait_ms);
}

/* Takes what has gone since the last time.  The milliseconds that the rest must wait. */
static uint64_t take_bytes(struct caller *c)
{
    uint64_t gone = http_bytes(c->req), more = gone - c->taken;
    c->taken = gone;
    return rates_take_bytes(c->guard->rates, rate_id(c), &c->limit, more, clock_ms());
}

/* A stream beyond the rate is slowed down, not cut. */
static enum http_pace pace(void *ctx, struct http_request *req)
{
    (void)ctx;
    struct caller *c = http_caller(req);
    if (c == NULL || c->limit.bytes == 0)
        return HTTP_PACE_FREE;
    return take_bytes(c) > 0 ? HTTP_PACE_WAIT : HTTP_PACE_GO;
}

static void end_call(void *arg)
{
    struct caller *c = arg;
    take_bytes(c);
    state_unref(c->state);
}

static int open_route(void *ctx, struct http_request *req, struct error *err)
{
    struct guard *g = ctx;
    struct caller *c = arena_alloc(http_arena(req), sizeof *c);
    *c = (struct caller){.guard = g, .req = req, .state = state_current(g->state)};
    http_on_end(req, end_call, c);
    http_set_caller(req, c);
    const struct http_route *route = http_route(req);
    if (route != NULL && (route->right == RIGHT_NONE || route->right == RIGHT_OPERATION ||
                          (route->open && http_listener(req) == NET_ADMIN)))
        return 0;
    int code = identify(req, c, err);
    if (code == 0)
        code = judge(req, c, err);
    return code != 0 ? code : take_turn(req, c, err);
}

/* --- for handlers ----------------------------------------------------------------------------- */

const struct user *guard_user(const struct http_request *req)
{
    const struct caller *c = http_caller(req);
    return c != NULL ? c->user : NULL;
}

int guard_ask(struct http_request *req, enum right right, const char *bucket, const char *key,
              struct error *err)
{
    struct caller *c = http_caller(req);
    return c != NULL ? ask(req, c, right, bucket, key, err) : 0;
}

bool guard_sees(const struct http_request *req, const char *bucket)
{
    const struct caller *c = http_caller(req);
    struct access_question q;
    return c == NULL || decide(c, RIGHT_LIST, bucket, NULL, &q).allowed;
}

static void put_proof_of(const struct caller *c, const struct redirect_call *call, struct buf *url)
{
    struct proof_keys *keys = guard_keys(c->guard);
    buf_puts(url, "&dfca=");
    redirect_proof_put(keys, c->user->id, (uint64_t)clock_wall_ms() + c->guard->redirect_ttl_ms,
                       call, url);
    proof_keys_unref(keys);
}

static void put_new_proof(const struct http_request *req, const struct caller *c,
                          uint64_t bucket_id, const char *new_name, struct buf *url)
{
    struct redirect_call call;
    call_of(req, bucket_id, new_name, &call);
    put_proof_of(c, &call, url);
}

void guard_put_call_proof(const struct http_request *req, const struct redirect_call *call,
                          struct buf *url)
{
    const struct caller *c = http_caller(req);
    if (c != NULL && c->user != NULL)
        put_proof_of(c, call, url);
}

void guard_put_proof(const struct http_request *req, uint64_t bucket_id, const char *new_name,
                     struct buf *url)
{
    const struct caller *c = http_caller(req);
    if (c == NULL || c->user == NULL)
        return;
    if (new_name != NULL) {
        buf_puts(url, "&dfcn=");
        buf_put_url_escaped(url, new_name, strlen(new_name), "");
    }
    if (c->via != VIA_REDIRECT) {
        put_new_proof(req, c, bucket_id, new_name, url);
        return;
    }
    buf_puts(url, "&dfca=");
    buf_puts(url, http_query(req, "dfca"));
}

void guard_put_own_proof(const struct http_request *req, uint64_t bucket_id, struct buf *url)
{
    const struct caller *c = http_caller(req);
    if (c != NULL && c->user != NULL)
        put_new_proof(req, c, bucket_id, NULL, url);
}

bool guard_has_url(const struct http_request *req)
{
    const struct caller *c = http_caller(req);
    return c != NULL && c->via == VIA_URL;
}

void guard_put_url_proof(const struct http_request *req, const struct redirect_call *call,
                         uint64_t life_ms, uint64_t *expires_ms, struct buf *url)
{
    const struct caller *c = http_caller(req);
    struct token t = {.issued_ms = (uint64_t)clock_wall_ms()};
    t.expires_ms = *expires_ms = t.issued_ms + life_ms;
    snprintf(t.user, sizeof t.user, "%s", c->user->id);
    snprintf(t.access, sizeof t.access, "%s", c->access);
    random_bytes(t.random, sizeof t.random);
    struct proof_keys *keys = guard_keys(c->guard);
    signed_url_put(keys, &t, call, url);
    proof_keys_unref(keys);
}

int guard_ask_new_name(struct http_request *req, const char *bucket, const char *new_name,
                       struct error *err)
{
    const struct caller *c = http_caller(req);
    if (c == NULL || c->via != VIA_REDIRECT) {
        int code = guard_ask(req, RIGHT_READ, bucket, http_path_param(req, "object"), err);
        return code != 0 ? code : guard_ask(req, RIGHT_WRITE, bucket, new_name, err);
    }
    const char *allowed = http_query(req, "dfcn");
    if (allowed != NULL && strcmp(allowed, new_name) == 0)
        return 0;
    return error_set(err, E_ACCESS_DENIED, "the proof of the redirect is for another new name");
}

void guard_note_login(struct http_request *req, const char *claimed)
{
    struct caller *c = http_caller(req);
    if (c != NULL)
        c->claimed = arena_strdup(http_arena(req), claimed);
}

void guard_account(const struct http_request *req, struct guard_account *out)
{
    static const char *const words[] = {[VIA_NOTHING] = "anonymous",
                                        [VIA_TOKEN] = "token",
                                        [VIA_REDIRECT] = "proof",
                                        [VIA_URL] = "url",
                                        [VIA_SIGNATURE] = "signature"};
    const struct caller *c = http_caller(req);
    *out = (struct guard_account){.key = ""};
    if (c == NULL)
        return;
    out->via = words[c->via];
    out->key = c->claimed != NULL ? c->claimed : c->via == VIA_SIGNATURE ? c->access : c->token;
    if (c->asked)
        out->rule = access_rule_text(&c->last, out->rule_text);
}

/* --- S3 requests ------------------------------------------------------------------------------ */

static const struct key_owner *owner_in_force(const struct caller *c, const char *access_key)
{
    const struct key_owner *o = access_key_owner(&c->state->access, access_key);
    bool counts = o != NULL && o->user->enabled && access_key_is_in_force(o->key, clock_wall_ms());
    return counts ? o : NULL;
}

const char *guard_find_key(const struct http_request *req, const char *access_key)
{
    const struct key_owner *o = owner_in_force(http_caller(req), access_key);
    return o != NULL ? o->key->secret : NULL;
}

int guard_secret(const struct http_request *req, const char *access_key,
                 char secret[static SECRET_CHARS + 1], struct error *err)
{
    const struct caller *c = http_caller(req);
    const struct key_owner *o = access_key_owner(&c->state->access, access_key);
    struct proof_keys *keys = guard_keys(c->guard);
    int code =
        seal_open(proof_keys_cluster(keys), o->user->id, o->access, o->key->secret, secret, err);
    proof_keys_unref(keys);
    return code;
}

void guard_set_key(struct http_request *req, const char *access_key)
{
    struct caller *c = http_caller(req);
    const struct key_owner *o = access_key_owner(&c->state->access, access_key);
    c->user = o->user;
    c->via = VIA_SIGNATURE;
    snprintf(c->access, sizeof c->access, "%s", o->access);
    http_set_actor(req, o->user->id, o->user->name);
}

void guard_renew(struct http_request *req)
{
    struct caller *c = http_caller(req);
    if (c == NULL)
        return;
    state_unref(c->state);
    c->state = state_current(c->guard->state);
    c->user = NULL;
}

int guard_open(struct http_request *req, enum right right, const char *bucket, const char *key,
               struct error *err)
{
    struct caller *c = http_caller(req);
    struct access_question q;
    return note(c, right, bucket, key, &q) ? take_turn(req, c, err) : access_deny(c->user, &q, err);
}

/* --- the whole -------------------------------------------------------------------------------- */

int guard_new(const struct guard_config *config, struct guard **out, struct error *err)
{
    struct proof_keys *keys = NULL;
    int code = load_keys(config->key_file, &keys, err);
    if (code != 0)
        return code;
    struct guard *g = xcalloc(1, sizeof *g);
    g->hook = (struct http_guard){.open = open_route, .pace = pace, .ctx = g, .asks_rights = true};
    g->state = config->state;
    g->redirect_ttl_ms = config->redirect_ttl_ms;
    g->keys = keys;
    g->rates = rates_new();
    pthread_rwlock_init(&g->lock, NULL);
    *out = g;
    return 0;
}

void guard_free(struct guard *g)
{
    if (g == NULL)
        return;
    proof_keys_unref(g->keys);
    rates_free(g->rates);
    pthread_rwlock_destroy(&g->lock);
    free(g);
}

const struct http_guard *guard_hook(const struct guard *g)
{
    return g != NULL ? &g->hook : NULL;
}
