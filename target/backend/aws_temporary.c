#include "target/backend/aws_temporary.h"

#include <openssl/crypto.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "target/backend/aws_answer.h"
#include "target/backend/aws_question.h"
#include "target/backend/exchange_env.h"
#include "target/backend/kept.h"

/* --- one question ----------------------------------------------------------------------------- */

static int refusal(const struct question *q, struct answer *n, bool *again, struct error *err)
{
    _cleanup_buf_ struct buf words = BUF_INIT;
    if (n->code == 0)
        aws_answer_words(buf_str(&n->body), n->body.len, &words);
    int code = answer_refusal(q, n, buf_str(&words), err);
    *again = answer_is_passing(n) || aws_answer_is_passing(buf_str(&words));
    return code;
}

/* A good answer is the caller's to read; it ends it in any case. */
static int ask(const struct exchange_env *env, struct question *q, struct answer *n, bool *again,
               struct error *err)
{
    question_ask(env->asker, q, n);
    question_wipe(q);
    return answer_is_good(n) ? 0 : refusal(q, n, again, err);
}

/* What was read of it: an error says whose it is. */
static int said_by(const struct question *q, int code, struct error *err)
{
    return code == 0 ? 0 : error_wrap(err, "%s", q->who);
}

/* --- web identities, containers --------------------------------------------------------------- */

static int ask_web_identity(const struct exchange_env *env, void *value, int64_t *end_ms,
                            bool *again, struct error *err)
{
    struct question q;
    struct answer n;
    _cleanup_arena_ struct arena *a = arena_new(8192);
    int code = aws_question_web_identity(a, &q, err);
    if (code != 0)
        return code;
    code = ask(env, &q, &n, again, err);
    if (code == 0)
        code = said_by(
            &q, aws_answer_xml(buf_str(&n.body), n.body.len, clock_wall_ms(), value, end_ms, err),
            err);
    answer_done(&n);
    return code;
}

static int read_json(const struct question *q, struct answer *n, void *value, int64_t *end_ms,
                     struct error *err)
{
    return said_by(
        q, aws_answer_json(buf_str(&n->body), n->body.len, clock_wall_ms(), value, end_ms, err),
        err);
}

static int ask_container(const struct exchange_env *env, void *value, int64_t *end_ms, bool *again,
                         struct error *err)
{
    struct question q;
    struct answer n;
    _cleanup_arena_ struct arena *a = arena_new(8192);
    int code = aws_question_container(a, &q, err);
    if (code != 0)
        return code;
    code = ask(env, &q, &n, again, err);
    if (code == 0)
        code = read_json(&q, &n, value, end_ms, err);
    answer_done(&n);
    return code;
}

/* --- an instance, in three steps -------------------------------------------------------------- */

struct instance {
    const struct exchange_env *env;
    struct arena *arena;
    bool *again;
    char session[AWS_SESSION_MAX], role[AWS_ROLE_MAX];
};

static int ask_session(struct instance *i, struct error *err)
{
    struct question q;
    struct answer n;
    int code = aws_question_instance_token(i->arena, &q, err);
    if (code != 0)
        return code;
    code = ask(i->env, &q, &n, i->again, err);
    if (code == 0)
        code = said_by(&q, aws_answer_session(buf_str(&n.body), n.body.len, i->session, err), err);
    else if (n.code == E_TIMEOUT) /* by default its answer goes one hop */
        error_wrap(err, "in a container an instance needs HttpPutResponseHopLimit 2");
    answer_done(&n);
    return code;
}

/* Where there is none the service answers 404. */
static int ask_role(struct instance *i, struct error *err)
{
    struct question q;
    struct answer n;
    int code = aws_question_instance(i->arena, i->session, NULL, &q, err);
    if (code != 0)
        return code;
    code = ask(i->env, &q, &n, i->again, err);
    if (n.code == 0 && n.status == 404)
        code = said_by(&q, aws_answer_role("", 0, i->role, err), err);
    else if (code == 0)
        code = said_by(&q, aws_answer_role(buf_str(&n.body), n.body.len, i->role, err), err);
    answer_done(&n);
    return code;
}

static int ask_keys(struct instance *i, void *value, int64_t *end_ms, struct error *err)
{
    struct question q;
    struct answer n;
    int code = aws_question_instance(i->arena, i->session, i->role, &q, err);
    if (code != 0)
        return code;
    code = ask(i->env, &q, &n, i->again, err);
    if (code == 0)
        code = read_json(&q, &n, value, end_ms, err);
    answer_done(&n);
    return code;
}

/* It is asked by itself: users wonder why. */
static int ask_instance(const struct exchange_env *env, void *value, int64_t *end_ms, bool *again,
                        struct error *err)
{
    _cleanup_arena_ struct arena *a = arena_new(8192);
    struct instance i = {.env = env, .arena = a, .again = again};
    int code = ask_session(&i, err);
    if (code == 0)
        code = ask_role(&i, err);
    if (code == 0)
        code = ask_keys(&i, value, end_ms, err);
    OPENSSL_cleanse(i.session, sizeof i.session);
    return code == 0 ? 0
                     : error_wrap(err, "no keys in the environment, the shared file or from a "
                                       "container, and none from this machine");
}

/* --- all of them ------------------------------------------------------------------------------ */

#define KEYS(whose, fn)                                                                \
    {                                                                                  \
        .what = "keys for S3 of " whose, .size = sizeof(struct aws_keys), .ask = (fn), \
        .wall_ms = clock_wall_ms                                                       \
    }

static const struct kept_ops rows[AWS_SOURCES] = {
    [AWS_WEB_IDENTITY] = KEYS("the web identity", ask_web_identity),
    [AWS_CONTAINER] = KEYS("the container", ask_container),
    [AWS_INSTANCE] = KEYS("the instance", ask_instance),
};

struct aws_temporary {
    struct kept *kept[AWS_SOURCES]; /* NULL: this source is not asked */
};

struct aws_temporary *aws_temporary_new(void)
{
    struct aws_temporary *t = xcalloc(1, sizeof *t);
    for (size_t i = 0; i < AWS_SOURCES; i++)
        t->kept[i] = rows[i].ask != NULL ? kept_new(&rows[i]) : NULL;
    return t;
}

void aws_temporary_free(struct aws_temporary *t)
{
    for (size_t i = 0; t != NULL && i < AWS_SOURCES; i++)
        kept_free(t->kept[i]);
    free(t);
}

int aws_temporary_get(struct aws_temporary *t, const struct exchange_env *env, const char *profile,
                      const struct aws_keys *refused, struct aws_keys *out, enum aws_source *source,
                      struct error *err)
{
    int code = aws_source_find(profile, source, out, err);
    if (code != 0 || t->kept[*source] == NULL)
        return code;
    return kept_get(t->kept[*source], env, refused, out, err);
}
