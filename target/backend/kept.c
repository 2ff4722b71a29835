#include "target/backend/kept.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "target/backend/exchange.h"
#include "target/backend/kept_rule.h"

struct kept {
    const struct kept_ops *ops;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t ended; /* a question */
    bool asking;
    uint64_t questions; /* that have ended */
    struct error err;   /* of the last one */
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

/* Without the lock meanwhile. */
static int ask(struct kept *k, const struct exchange_env *env, bool once)
{
    struct error err = ERROR_INIT;
    int64_t end_ms = 0;
    void *value = xcalloc(1, k->ops->size);
    k->asking = true;
    pthread_mutex_unlock(&k->lock);
    int code = ask_until(k, env, once, value, &end_ms, &err);
    if (code != 0 && once)
        log_warn("not renewed, the old one is used until it ends", lstr("what", k->ops->what),
                 lerr(&err));
    pthread_mutex_lock(&k->lock);
    k->asking = false;
    k->questions++;
    k->err = code != 0 ? err : ERROR_INIT;
    if (code == 0)
        keep(k, value, end_ms);
    else
        kept_rule_failed(&k->times, k->ops->wall_ms(), any_number());
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

/* 0: it holds. */
static int get(struct kept *k, const struct exchange_env *env)
{
    for (bool has_asked = false;;) {
        const int64_t now_ms = k->ops->wall_ms();
        const bool holds = kept_rule_holds(&k->times, now_ms);
        const enum kept_move move = kept_rule_move(&k->times, k->asking, now_ms);
        if (move == KEPT_USE || (has_asked && holds))
            return 0;
        if (has_asked && k->err.code == 0)
            error_set(&k->err, E_BACKEND, "%s: it has ended before it could be used", k->ops->what);
        if (has_asked)
            return k->err.code;
        const int code = move == KEPT_WAIT ? wait_for_answer(k) : ask(k, env, holds);
        if (code != 0 && !holds)
            return code;
        has_asked = move == KEPT_ASK && !holds;
    }
}

int kept_get(struct kept *k, const struct exchange_env *env, void *value, struct error *err)
{
    pthread_mutex_lock(&k->lock);
    int code = get(k, env);
    if (code == 0)
        memcpy(value, k->value, k->ops->size);
    else
        error_set(err, code, "%s", k->err.message);
    pthread_mutex_unlock(&k->lock);
    return code;
}

void kept_refused(struct kept *k, const void *value)
{
    pthread_mutex_lock(&k->lock);
    if (k->times.is_there && memcmp(k->value, value, k->ops->size) == 0) {
        OPENSSL_cleanse(k->value, k->ops->size);
        k->times = (struct kept_times){.is_there = false};
    }
    pthread_mutex_unlock(&k->lock);
}
