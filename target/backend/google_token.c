#include "target/backend/google_token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"
#include "io/file.h"
#include "target/backend/exchange.h"

#define SCOPE "https://www.googleapis.com/auth/devstorage.read_write"
#define GRANT "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"

enum {
    FILE_MAX = 1 << 20,
    LIFE_SECONDS = 3600,      /* of a statement: the most that Google takes */
    EARLY_MS = 5 * 60 * 1000, /* a token is asked for so long before the old one's end … */
    TOKEN_MAX = 8192,
    CALL_TIMEOUT_MS = 60 * 1000,
    WORDS_MAX = 200,
};

/* --- the key ---------------------------------------------------------------------------------- */

int google_key_parse(const char *text, size_t len, struct arena *a, struct google_key *out,
                     struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *type = "";
    struct google_key k = {.key_id = "", .token_uri = "https://oauth2.googleapis.com/token"};
    if (json_parse(text, len, &doc, NULL) != 0 || json_get_str(doc, "", "type", &type, NULL) != 0 ||
        strcmp(type, "service_account") != 0)
        return error_set(err, E_BACKEND_DENIED,
                         "the key file is not the JSON of a service account's key");
    if (json_need_str(doc, "", "client_email", &k.email, NULL) != 0 ||
        json_need_str(doc, "", "private_key", &k.private_key, NULL) != 0 ||
        json_get_str(doc, "", "private_key_id", &k.key_id, NULL) != 0 ||
        json_get_str(doc, "", "token_uri", &k.token_uri, NULL) != 0)
        return error_set(err, E_BACKEND_DENIED,
                         "the key file has no client_email with a private_key");
    if (strncmp(k.token_uri, "https://", 8) != 0 && strncmp(k.token_uri, "http://", 7) != 0)
        return error_set(err, E_BACKEND_DENIED, "token_uri of the key file is no http(s) URL");
    *out = (struct google_key){.email = arena_strdup(a, k.email),
                               .key_id = arena_strdup(a, k.key_id),
                               .private_key = arena_strdup(a, k.private_key),
                               .token_uri = arena_strdup(a, k.token_uri)};
    return 0;
}

/* Base64 as URLs have it, without what fills it up (RFC 4648, section 5). */
static void put_base64url(struct buf *out, const void *data, size_t len)
{
    _cleanup_free_ unsigned char *text = xmalloc((len + 2) / 3 * 4 + 1);
    int size = EVP_EncodeBlock(text, data, (int)len);
    for (int i = 0; i < size && text[i] != '='; i++)
        buf_putc(out, text[i] == '+' ? '-' : text[i] == '/' ? '_' : (char)text[i]);
}

static void put_json_part(struct buf *out, json_t *doc)
{
    _cleanup_free_ char *text = json_text(doc);
    put_base64url(out, text, strlen(text));
    json_decref(doc);
}

/* Of what stands there from `from` on. */
static int put_signature(EVP_PKEY *key, size_t from, struct buf *out, struct error *err)
{
    unsigned char signature[1024];
    size_t len = sizeof signature;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = ctx != NULL && EVP_PKEY_base_id(key) == EVP_PKEY_RSA &&
                EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
                EVP_DigestSign(ctx, signature, &len, (const unsigned char *)out->data + from,
                               out->len - from) == 1;
    EVP_MD_CTX_free(ctx);
    if (!good)
        return error_set(err, E_BACKEND_DENIED, "private_key of the key file cannot sign");
    buf_putc(out, '.');
    put_base64url(out, signature, len);
    return 0;
}

int google_key_sign(const struct google_key *key, int64_t now_s, struct buf *out, struct error *err)
{
    static char no_passphrase[] = ""; /* nobody is asked for one */
    const size_t from = out->len;
    BIO *bio = BIO_new_mem_buf(key->private_key, -1);
    EVP_PKEY *private =
        bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, no_passphrase) : NULL;
    BIO_free(bio);
    if (private == NULL)
        return error_set(err, E_BACKEND_DENIED, "private_key of the key file is no key in PEM");
    json_t *header = json_pack("{s:s, s:s}", "alg", "RS256", "typ", "JWT");
    if (*key->key_id != '\0')
        json_object_set_new(header, "kid", json_string(key->key_id));
    put_json_part(out, header);
    buf_putc(out, '.');
    put_json_part(out, json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", key->email, "scope", SCOPE,
                                 "aud", key->token_uri, "iat", (json_int_t)now_s, "exp",
                                 (json_int_t)(now_s + LIFE_SECONDS)));
    int code = put_signature(private, from, out, err);
    EVP_PKEY_free(private);
    return code;
}

static int load_key(struct arena *a, struct google_key *out, struct error *err)
{
    const char *path = getenv("GOOGLE_APPLICATION_CREDENTIALS");
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct error why = ERROR_INIT;
    if (path == NULL || *path == '\0')
        return error_set(err, E_BACKEND_DENIED,
                         "no key: GOOGLE_APPLICATION_CREDENTIALS names no file");
    if (file_read_all(path, FILE_MAX, &text, &why) != 0)
        return error_set(err, E_BACKEND_DENIED, "no key: '%s' cannot be read", path);
    int code = google_key_parse(buf_str(&text), text.len, a, out, err);
    OPENSSL_cleanse(text.data, text.len);
    return code == 0 ? 0 : error_wrap(err, "'%s'", path);
}

static void wipe_key(struct google_key *key)
{
    if (key->private_key != NULL)
        OPENSSL_cleanse((char *)(uintptr_t)key->private_key, strlen(key->private_key));
}

/* --- the token service ------------------------------------------------------------------------ */

struct token {
    char *text;
    int64_t until_ms; /* wall time */
};

static int read_token(const struct http_result *r, int64_t now_ms, struct token *out,
                      struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *text = NULL;
    uint64_t seconds = 0;
    if (json_parse(r->body.data, r->body.len, &doc, NULL) != 0 ||
        json_need_str(doc, "", "access_token", &text, NULL) != 0 ||
        json_need_u64(doc, "", "expires_in", &seconds, NULL) != 0 || strlen(text) > TOKEN_MAX ||
        strpbrk(text, "\r\n") != NULL || seconds > INT32_MAX)
        return error_set(err, E_BACKEND, "the token service's answer is no token");
    *out = (struct token){.text = xstrdup(text), .until_ms = now_ms + (int64_t)seconds * 1000};
    return 0;
}

/* "invalid_grant: Invalid JWT Signature." */
static void put_words(const struct http_result *r, struct buf *out)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *error = "", *words = "";
    if (json_parse(r->body.data, r->body.len, &doc, NULL) == 0 &&
        json_get_str(doc, "", "error", &error, NULL) == 0 &&
        json_get_str(doc, "", "error_description", &words, NULL) == 0)
        buf_printf(out, "%.*s: %.*s", WORDS_MAX, error, WORDS_MAX, words);
}

static int token_refusal(const struct http_result *r, struct error *err)
{
    _cleanup_(buf_done)
    struct buf words = BUF_INIT;
    if (r->code != 0)
        return failure_of_transport(r->code, "the token service cannot be reached", err);
    put_words(r, &words);
    if (r->status == 400 || r->status == 401 || r->status == 403)
        return error_set(err, E_BACKEND_DENIED, "the token service refuses the key: %s",
                         buf_str(&words));
    int code = failure_of_status(r->status, buf_str(&words), NULL, err);
    return code == E_OBJECT_NOT_FOUND ? error_recode(err, E_BACKEND, "token service") : code;
}

/* One question.  *again: another may have another answer. */
static int ask_once(const struct exchange_env *env, const struct google_key *key, struct token *out,
                    bool *again, struct error *err)
{
    static const char *const lines[] = {"content-type: application/x-www-form-urlencoded", NULL};
    _cleanup_(buf_done)
    struct buf body = BUF_INIT;
    struct http_result r = {.code = 0};
    struct error why = ERROR_INIT;
    int64_t now_ms = clock_wall_ms();
    *again = false;
    buf_puts(&body, "grant_type=" GRANT "&assertion=");
    int code = google_key_sign(key, now_ms / 1000, &body, err);
    if (code != 0)
        return code;
    const struct http_call call = {.method = HTTP_POST,
                                   .url = key->token_uri,
                                   .headers = lines,
                                   .body = body.data,
                                   .body_len = body.len,
                                   .total_timeout_ms = CALL_TIMEOUT_MS};
    code = http_call_wait(env->client, &call, &r, &why);
    *again = code != 0 && failure_is_passing(r.status, r.code);
    code = code == 0 ? read_token(&r, now_ms, out, err) : token_refusal(&r, err);
    http_result_done(&r);
    return code;
}

static int ask_service(const struct exchange_env *env, struct token *out, struct error *err)
{
    struct google_key key = {.email = ""};
    _cleanup_(arena_freep)
    struct arena *a = arena_new(4096);
    int code = load_key(a, &key, err);
    bool again = code == 0;
    for (unsigned done = 0; again;) {
        uint64_t luck, wait_ms;
        *err = ERROR_INIT;
        code = ask_once(env, &key, out, &again, err);
        random_bytes(&luck, sizeof luck);
        again = code != 0 && again && failure_wait(&env->rules, ++done, 0, luck, &wait_ms) &&
                env->wait(env->ctx, wait_ms);
    }
    wipe_key(&key);
    return code;
}

/* --- all of them ------------------------------------------------------------------------------ */

struct google_tokens {
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t asked;
    bool asking;
    struct token token; /* text NULL: none */
    struct error err;   /* of the last question */
};

struct google_tokens *google_tokens_new(void)
{
    struct google_tokens *g = xcalloc(1, sizeof *g);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->asked, NULL);
    return g;
}

static void drop(struct google_tokens *g)
{
    if (g->token.text != NULL)
        OPENSSL_cleanse(g->token.text, strlen(g->token.text));
    free(steal(g->token.text));
}

void google_tokens_free(struct google_tokens *g)
{
    if (g == NULL)
        return;
    drop(g);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->asked);
    free(g);
}

static bool is_good(const struct token *t, int64_t now_ms)
{
    return t->text != NULL && now_ms < t->until_ms;
}

/* Without the lock meanwhile.  A token that is good for a short time is used up to its half. */
static void ask_and_keep(struct google_tokens *g, const struct exchange_env *env)
{
    struct token t = {.text = NULL};
    struct error err = ERROR_INIT;
    g->asking = true;
    pthread_mutex_unlock(&g->lock);
    int code = ask_service(env, &t, &err);
    pthread_mutex_lock(&g->lock);
    g->asking = false;
    g->err = err;
    drop(g);
    if (code == 0) {
        int64_t life_ms = t.until_ms - clock_wall_ms();
        t.until_ms -= life_ms / 2 < EARLY_MS ? life_ms / 2 : EARLY_MS;
        g->token = t;
    }
    pthread_cond_broadcast(&g->asked);
}

int google_token(struct google_tokens *g, const struct exchange_env *env, struct arena *a,
                 const char **out, struct error *err)
{
    pthread_mutex_lock(&g->lock);
    bool waited = g->asking;
    while (g->asking)
        pthread_cond_wait(&g->asked, &g->lock);
    if (!is_good(&g->token, clock_wall_ms()) && !(waited && g->err.code != 0))
        ask_and_keep(g, env);
    int code = g->token.text != NULL ? 0 : error_set(err, g->err.code, "%s", g->err.message);
    if (code == 0)
        *out = arena_strdup(a, g->token.text);
    pthread_mutex_unlock(&g->lock);
    return code;
}

void google_token_refused(struct google_tokens *g, const char *token)
{
    pthread_mutex_lock(&g->lock);
    if (g->token.text != NULL && strcmp(g->token.text, token) == 0)
        drop(g);
    pthread_mutex_unlock(&g->lock);
}
