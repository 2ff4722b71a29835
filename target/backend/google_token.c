#include "target/backend/google_token.h"

#include <openssl/crypto.h>
#include <string.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "target/backend/exchange_env.h"
#include "target/backend/google_source.h"

enum { TOKEN_MAX = 8192 };

struct token {
    char text[TOKEN_MAX];
};

/* --- the token service ------------------------------------------------------------------------ */

static int read_token(const struct answer *n, const char *who, int64_t now_ms, struct token *out,
                      int64_t *end_ms, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *text = NULL;
    uint64_t seconds = 0;
    if (json_parse(n->body.data, n->body.len, &doc, NULL) != 0 ||
        json_need_str(doc, "", "access_token", &text, NULL) != 0 ||
        json_need_u64(doc, "", "expires_in", &seconds, NULL) != 0 || strlen(text) >= TOKEN_MAX ||
        strpbrk(text, "\r\n") != NULL || seconds > INT32_MAX)
        return error_set(err, E_BACKEND, "%s: the answer is no token", who);
    memcpy(out->text, text, strlen(text) + 1);
    *end_ms = now_ms + (int64_t)seconds * 1000;
    return 0;
}

/* "invalid_grant: Invalid JWT Signature." */
static void put_words(const struct answer *n, struct buf *out)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *error = "", *words = "";
    if (json_parse(n->body.data, n->body.len, &doc, NULL) == 0 &&
        json_get_str(doc, "", "error", &error, NULL) == 0 &&
        json_get_str(doc, "", "error_description", &words, NULL) == 0)
        buf_printf(out, "%.*s: %.*s", QUESTION_WORDS_MAX, error, QUESTION_WORDS_MAX, words);
}

static int token_refusal(const struct question *q, const struct answer *n, struct error *err)
{
    _cleanup_buf_ struct buf words = BUF_INIT;
    if (q->is_metadata && n->code == 0 && n->status == 404)
        return error_set(err, E_BACKEND_DENIED,
                         "%s has no service account for this machine: give it one, or set "
                         "GOOGLE_APPLICATION_CREDENTIALS",
                         q->who);
    if (n->code == 0)
        put_words(n, &words);
    int code = answer_refusal(q, n, buf_str(&words), err);
    if (q->is_metadata && n->code != 0) /* where nobody may be there at all */
        error_recode(err, code, "GOOGLE_APPLICATION_CREDENTIALS names no key file");
    return code;
}

static int take_token(const struct question *q, const struct answer *n, int64_t now_ms,
                      struct token *out, int64_t *end_ms, struct error *err)
{
    if (!answer_is_good(n))
        return token_refusal(q, n, err);
    if (q->is_metadata && !n->is_google)
        return error_set(err, E_BACKEND_DENIED,
                         "what answers for %s is not Google's (no Metadata-Flavor)", q->who);
    return read_token(n, q->who, now_ms, out, end_ms, err);
}

static int ask(const struct exchange_env *env, void *value, int64_t *end_ms, bool *again,
               struct error *err)
{
    struct question q = {.body = NULL};
    struct answer n;
    _cleanup_arena_ struct arena *a = arena_new(4096);
    int64_t now_ms = clock_wall_ms();
    int code = google_question_make(a, now_ms / 1000, &q, err);
    if (code != 0)
        return code;
    question_ask(env->asker, &q, &n);
    question_wipe(&q);
    code = take_token(&q, &n, now_ms, value, end_ms, err);
    *again = answer_is_passing(&n);
    answer_done(&n);
    return code;
}

static const struct kept_ops token_ops = {.what = "the token for Google's services",
                                          .size = sizeof(struct token),
                                          .ask = ask,
                                          .wall_ms = clock_wall_ms};

/* --- for requests ----------------------------------------------------------------------------- */

struct kept *google_tokens_new(void)
{
    return kept_new(&token_ops);
}

int google_token(struct kept *tokens, const struct exchange_env *env, struct arena *a,
                 const char *refused, const char **out, struct error *err)
{
    struct token t, old = {.text = ""};
    if (refused != NULL)
        memcpy(old.text, refused, strlen(refused) + 1);
    int code = kept_get(tokens, env, refused != NULL ? &old : NULL, &t, err);
    if (code == 0)
        *out = arena_strdup(a, t.text);
    OPENSSL_cleanse(&t, sizeof t);
    OPENSSL_cleanse(&old, sizeof old);
    return code;
}
