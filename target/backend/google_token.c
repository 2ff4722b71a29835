#include "target/backend/google_token.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/rng.h"
#include "target/backend/exchange.h"
#include "target/backend/google_source.h"

enum {
    EARLY_MS = 5 * 60 * 1000, /* a token is asked for so long before the old one's end … */
    TOKEN_MAX = 8192,
    WORDS_MAX = 200,
};

/* --- a question ------------------------------------------------------------------------------- */

struct answer {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over, is_google;
    struct http_result result;
};

/* Both in the loop's thread. */
static void take_head(void *arg, const struct http_head *head)
{
    struct answer *n = arg;
    const char *flavour = head->header(head, "Metadata-Flavor");
    n->is_google = flavour != NULL && strcmp(flavour, "Google") == 0;
}

static void take_end(void *arg, struct http_result *r)
{
    struct answer *n = arg;
    pthread_mutex_lock(&n->lock);
    n->result.code = r->code;
    n->result.status = r->status;
    n->result.body = r->body;
    r->body = BUF_INIT;
    n->over = true;
    pthread_cond_signal(&n->ended);
    pthread_mutex_unlock(&n->lock);
}

static void answer_wait(struct http_client *client, const struct google_question *q,
                        struct answer *n)
{
    const bool has_body = q->method == HTTP_POST;
    const struct http_call call = {.method = q->method,
                                   .url = q->url,
                                   .headers = q->headers,
                                   .body = has_body ? q->body : NULL,
                                   .body_len = has_body ? strlen(q->body) : 0,
                                   .total_timeout_ms = q->timeout_ms,
                                   .on_head = take_head};
    http_call_start(client, &call, take_end, n);
    pthread_mutex_lock(&n->lock);
    while (!n->over)
        pthread_cond_wait(&n->ended, &n->lock);
    pthread_mutex_unlock(&n->lock);
    pthread_cond_destroy(&n->ended);
    pthread_mutex_destroy(&n->lock);
}

/* --- the token service ------------------------------------------------------------------------ */

struct token {
    char *text;
    int64_t until_ms; /* wall time */
};

static int read_token(const struct http_result *r, const char *who, int64_t now_ms,
                      struct token *out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *text = NULL;
    uint64_t seconds = 0;
    if (json_parse(r->body.data, r->body.len, &doc, NULL) != 0 ||
        json_need_str(doc, "", "access_token", &text, NULL) != 0 ||
        json_need_u64(doc, "", "expires_in", &seconds, NULL) != 0 || strlen(text) > TOKEN_MAX ||
        strpbrk(text, "\r\n") != NULL || seconds > INT32_MAX)
        return error_set(err, E_BACKEND, "%s: the answer is no token", who);
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

/* Where nobody may be there at all. */
#define NO_METADATA " (asked since GOOGLE_APPLICATION_CREDENTIALS names no key file)"

static int transport_refusal(const struct google_question *q, int transport, struct error *err)
{
    int code = failure_of_transport(transport, "no connection, or one that was cut", err);
    return error_recode(err, code, "%s%s", q->who, q->is_metadata ? NO_METADATA : "");
}

static int token_refusal(const struct google_question *q, const struct answer *n, struct error *err)
{
    _cleanup_(buf_done)
    struct buf words = BUF_INIT;
    const struct http_result *r = &n->result;
    if (r->code != 0)
        return transport_refusal(q, r->code, err);
    if (q->is_metadata && r->status == 404)
        return error_set(err, E_BACKEND_DENIED,
                         "%s has no service account for this machine: give it one, or set "
                         "GOOGLE_APPLICATION_CREDENTIALS",
                         q->who);
    put_words(r, &words);
    if (r->status == 400 || r->status == 401 || r->status == 403)
        return error_set(err, E_BACKEND_DENIED, "%s refuses the key: %s", q->who, buf_str(&words));
    int code = failure_of_status(r->status, buf_str(&words), NULL, err);
    return error_recode(err, code == E_OBJECT_NOT_FOUND ? E_BACKEND : code, "%s", q->who);
}

static int take_token(const struct google_question *q, const struct answer *n, int64_t now_ms,
                      struct token *out, struct error *err)
{
    if (n->result.code != 0 || n->result.status < 200 || n->result.status > 299)
        return token_refusal(q, n, err);
    if (q->is_metadata && !n->is_google)
        return error_set(err, E_BACKEND_DENIED,
                         "what answers for %s is not Google's (no Metadata-Flavor)", q->who);
    return read_token(&n->result, q->who, now_ms, out, err);
}

/* One question.  *again: another may have another answer. */
static int ask_once(const struct exchange_env *env, struct token *out, bool *again,
                    struct error *err)
{
    struct google_question q = {.body = NULL};
    struct answer n = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
    _cleanup_(arena_freep)
    struct arena *a = arena_new(4096);
    int64_t now_ms = clock_wall_ms();
    *again = false;
    int code = google_question_make(a, now_ms / 1000, &q, err);
    if (code != 0)
        return code;
    answer_wait(env->client, &q, &n);
    google_question_wipe(&q);
    code = take_token(&q, &n, now_ms, out, err);
    *again = code != 0 && failure_is_passing(n.result.status, n.result.code);
    if (n.result.body.len > 0)
        OPENSSL_cleanse(n.result.body.data, n.result.body.len);
    http_result_done(&n.result);
    return code;
}

static int ask_service(const struct exchange_env *env, struct token *out, struct error *err)
{
    int code;
    for (unsigned done = 0;;) {
        uint64_t luck, wait_ms;
        bool again;
        *err = ERROR_INIT;
        code = ask_once(env, out, &again, err);
        random_bytes(&luck, sizeof luck);
        if (!again || !failure_wait(&env->rules, ++done, 0, luck, &wait_ms) ||
            !env->wait(env->ctx, wait_ms))
            return code;
    }
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
