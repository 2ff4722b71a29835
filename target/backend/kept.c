#include "target/backend/kept.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "target/backend/exchange_env.h"
#include "target/backend/kept_rule.h"

struct kept {
    const struct kept_ops *ops;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t ended; /* a question */
    bool asking;
    uint64_t questions; /* that have ended */
    struct error err;   /* of the last one … */
    bool was_once;      /* … which was not repeated */
    struct kept_times times;
    void *value;
};

struct kept *kept_new(const struct kept_ops *ops)
{
    struct kept *k = xcalloc(1, sizeof *k);
    k->ops = ops;
    k->value = xcalloc(1, ops->size);
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->ended, NULL);
    return k;
}

void kept_free(struct kept *k)
{
    if (k == NULL)
        return;
    OPENSSL_cleanse(k->value, k->ops->size);
    free(k->value);
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->ended);
    free(k);
}

static uint64_t any_number(void)
{
    uint64_t luck;
    random_bytes(&luck, sizeof luck);
    return luck;
}

/* --- a question ------------------------------------------------------------------------------- */

static int ask_until(const struct kept *k, const struct exchange_env *env, bool once, void *value,
                     int64_t *end_ms, struct error *err)
{
    for (unsigned done = 0;;) {
        uint64_t wait_ms;
        bool again = false;
        *err = ERROR_INIT;
        OPENSSL_cleanse(value, k->ops->size);
        int code = k->ops->ask(env, value, end_ms, &again, err);
        if (code == 0 || !again || once ||
            !failure_wait(&env->rules, ++done, 0, any_number(), &wait_ms) ||
            !env->wait(env->ctx, wait_ms))
            return code;
    }
}

static void keep(struct kept *k, const void *value, int64_t end_ms)
{
    memcpy(k->value, value, k->ops->size);
    kept_rule_got(&k->times, k->ops->wall_ms(), end_ms, any_number());
}

/* Did it come in time to be used? */
static int check_end(const struct kept *k, int64_t end_ms, struct error *err)
{
    if (end_ms > k->ops->wall_ms())
        return 0;
    return error_set(err, E_BACKEND, "%s: it has ended before it could be used", k->ops->what);
}

static void note_failure(struct kept *k, bool renews, bool once)
{
    if (renews)
        kept_rule_not_renewed(&k->times, k->ops->wall_ms(), any_number());
    else if (!once)
        kept_rule_failed(&k->times, k->ops->wall_ms());
}

/* Without the lock meanwhile.  renews: the old one holds. */
static int ask(struct kept *k, const struct exchange_env *env, bool renews)
{
    const bool once = renews || env->once;
    struct error err = ERROR_INIT;
    int64_t end_ms = 0;
    void *value = xcalloc(1, k->ops->size);
    k->asking = true;
    pthread_mutex_unlock(&k->lock);
    int code = ask_until(k, env, once, value, &end_ms, &err);
    if (code == 0)
        code = check_end(k, end_ms, &err);
    if (code != 0 && renews)
        log_warn("not renewed, the old one is used until it ends", lstr("what", k->ops->what),
                 lerr(&err));
    pthread_mutex_lock(&k->lock);
    k->asking = false;
    k->questions++;
    k->err = code != 0 ? err : ERROR_INIT;
    k->was_once = once;
    if (code == 0)
        keep(k, value, end_ms);
    else
        note_failure(k, renews, once);
    OPENSSL_cleanse(value, k->ops->size);
    free(value);
    pthread_cond_broadcast(&k->ended);
    return code;
}

/* --- for all ---------------------------------------------------------------------------------- */

/* Until the question under way has ended, well or not. */
static int wait_for_answer(struct kept *k)
{
    const uint64_t before = k->questions;
    while (k->questions == before)
        pthread_cond_wait(&k->ended, &k->lock);
    return k->err.code;
}

static struct kept_case case_of(const struct kept *k, const struct exchange_env *env,
                                const void *refused)
{
    return (struct kept_case){.now_ms = k->ops->wall_ms(),
                              .pause_ms = (int64_t)env->pause_ms,
                              .asking = k->asking,
                              .refused =
                                  refused != NULL && memcmp(k->value, refused, k->ops->size) == 0};
}

/* 0: it is there. */
static int get(struct kept *k, const struct exchange_env *env, const void *refused)
{
    for (;;) {
        int code;
        const struct kept_case c = case_of(k, env, refused);
        switch (kept_rule_move(&k->times, &c)) {
        case KEPT_USE:
            return 0;
        case KEPT_RENEW:
            ask(k, env, true); /* well or not: it is looked anew */
            break;
        case KEPT_ASK:
            kept_rule_begins(&k->times, &c);
            return ask(k, env, false);
        case KEPT_WAIT:
            code = wait_for_answer(k);
            if (code == 0 || !k->was_once || env->once)
                return code;
            break;
        case KEPT_FAIL:
            return k->err.code;
        }
    }
}

int kept_get(struct kept *k, const struct exchange_env *env, const void *refused, void *value,
             struct error *err)
{
    pthread_mutex_lock(&k->lock);
    int code = get(k, env, refused);
    if (code == 0)
        memcpy(value, k->value, k->ops->size);
    else
        error_set(err, code, "%s", k->err.message);
    pthread_mutex_unlock(&k->lock);
    return code;
}
