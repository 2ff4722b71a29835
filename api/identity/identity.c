#include "api/identity/identity.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/failure.h"
#include "api/identity/profile.h"
#include "common/clock.h"
#include "common/mem.h"

enum { RENEW_AGAIN_MS = 5000 }; /* a renewal failed, and the old token is still there */

struct identity {
    char *access, *secret; /* NULL: the program gave the token */
    pthread_mutex_t lock;  /* of all that follows; nothing is called with it held */
    pthread_cond_t ended;
    bool busy;                       /* one thread logs in */
    uint64_t round;                  /* how many times that has ended */
    char *token;                     /* "Bearer …"; NULL: none */
    uint64_t renew_ms;               /* by clock_ms() */
    struct identity_failure failure; /* of the last round, where it was one */
};

/* ---- where it comes from ---- */

struct source {
    const char *access, *secret, *token;
};

static const char *filled(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static struct source source_of(const struct dfc_client_options *o, const struct profile *p)
{
    const struct source of_environment = {filled(getenv("DFC_ACCESS_KEY")),
                                          filled(getenv("DFC_SECRET_KEY")),
                                          filled(getenv("DFC_TOKEN"))};
    if (o->access_key != NULL || o->secret_key != NULL || o->token != NULL)
        return (struct source){filled(o->access_key), filled(o->secret_key), filled(o->token)};
    if (of_environment.access != NULL || of_environment.secret != NULL ||
        of_environment.token != NULL)
        return of_environment;
    return (struct source){p->access_key, p->secret_key, p->token};
}

static bool has_space(const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        if ((unsigned char)*text <= ' ')
            return true;
    }
    return false;
}

static int source_check(const struct source *s, struct dfc_error *err)
{
    if ((s->access != NULL) != (s->secret != NULL))
        return failure_set(err, DFC_INVALID, E_INVALID,
                           "an access key and its secret key must be given together");
    if (s->access != NULL && s->token != NULL)
        return failure_set(err, DFC_INVALID, E_INVALID,
                           "both a token and an access key are given: give one of them");
    if (has_space(s->access) || has_space(s->secret) || has_space(s->token))
        return failure_set(err, DFC_INVALID, E_INVALID,
                           "the access key, the secret key or the token has a space in it");
    return DFC_OK;
}

int identity_new(const struct dfc_client_options *o, const struct profile *p, struct identity **out,
                 struct dfc_error *err)
{
    const struct source s = source_of(o, p);
    int rc = source_check(&s, err);
    *out = NULL;
    if (rc != DFC_OK || (s.access == NULL && s.token == NULL))
        return rc;
    struct identity *id = xcalloc(1, sizeof *id);
    pthread_mutex_init(&id->lock, NULL);
    pthread_cond_init(&id->ended, NULL);
    id->renew_ms = UINT64_MAX;
    if (s.token != NULL) {
        id->token = xprintf("Bearer %s", s.token);
    } else {
        id->access = xstrdup(s.access);
        id->secret = xstrdup(s.secret);
    }
    *out = id;
    return DFC_OK;
}

void identity_free(struct identity *id)
{
    if (id == NULL)
        return;
    free(id->access);
    secret_free(id->secret);
    secret_free(id->token);
    pthread_cond_destroy(&id->ended);
    pthread_mutex_destroy(&id->lock);
    free(id);
}

const char *identity_access(const struct identity *id)
{
    return id->access;
}

const char *identity_secret(const struct identity *id)
{
    return id->secret;
}

void identity_recall(struct identity *id, const char *token, uint64_t renew_ms)
{
    id->token = xprintf("Bearer %s", token);
    id->renew_ms = renew_ms;
}

/* ---- one login for all threads ---- */

/* With the lock held.  Threads that wait share what the round brings, also its failure: a wrong
 * secret is not tried by each of them.  False: it failed. */
static bool wait_for_round(struct identity *id)
{
    for (uint64_t round = id->round; id->round == round;)
        pthread_cond_wait(&id->ended, &id->lock);
    return id->failure.err.result == DFC_OK;
}

enum identity_step identity_token(struct identity *id, char **token,
                                  struct identity_failure *failure)
{
    enum identity_step step = IDENTITY_READY;
    pthread_mutex_lock(&id->lock);
    while (id->token == NULL && id->busy && step == IDENTITY_READY) {
        if (!wait_for_round(id))
            step = IDENTITY_FAILED;
    }
    if (step == IDENTITY_FAILED)
        *failure = id->failure;
    else if (!id->busy && (id->token == NULL || clock_ms() >= id->renew_ms))
        step = IDENTITY_LOGIN;
    else
        *token = xstrdup(id->token);
    id->busy |= step == IDENTITY_LOGIN;
    pthread_mutex_unlock(&id->lock);
    return step;
}

/* With the lock held. */
static void end_round(struct identity *id)
{
    id->busy = false;
    id->round++;
    pthread_cond_broadcast(&id->ended);
}

void identity_granted(struct identity *id, const char *token, uint64_t renew_ms)
{
    pthread_mutex_lock(&id->lock);
    secret_free(id->token);
    id->token = xstrdup(token);
    id->renew_ms = renew_ms;
    id->failure = (struct identity_failure){0};
    end_round(id);
    pthread_mutex_unlock(&id->lock);
}

bool identity_failed(struct identity *id, const struct identity_failure *failure, char **token)
{
    pthread_mutex_lock(&id->lock);
    bool earlier = id->token != NULL;
    if (earlier)
        *token = xstrdup(id->token);
    id->renew_ms = clock_ms() + RENEW_AGAIN_MS;
    id->failure = *failure;
    end_round(id);
    pthread_mutex_unlock(&id->lock);
    return earlier;
}

void identity_drop(struct identity *id, const char *token)
{
    pthread_mutex_lock(&id->lock);
    if (id->token != NULL && strcmp(id->token, token) == 0) {
        secret_free(id->token);
        id->token = NULL;
    }
    pthread_mutex_unlock(&id->lock);
}
