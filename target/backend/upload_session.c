#include "target/backend/upload_session.h"

#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"

enum { RANGE_MAX = 80, MORE = 308, ABORTED = 499 };

struct session {
    const struct exchange_env *env;
    const struct upload *u;
    const struct backend_ops *ops;
    char *url;
    uint64_t sent; /* what the service has */
    unsigned done; /* tries */
    char *etag;
};

static int session_begin(struct session *s, const struct checksum_value *md5, struct error *err)
{
    const struct backend_write write = {.content_type = s->u->content_type,
                                        .meta = s->u->meta,
                                        .meta_len = s->u->meta_len,
                                        .md5 = *md5,
                                        .size = s->u->size};
    const struct backend_ask ask = {
        .verb = BACKEND_SESSION_BEGIN, .name = s->u->name, .write = &write};
    struct exchange_reply reply;
    int code = exchange_send(s->env, s->u->backend_url, &ask, NULL, &reply, err);
    s->url = reply.location;
    buf_done(&reply.body);
    if (code == 0 && s->url == NULL)
        code = error_set(err, E_BACKEND, "the backend began an upload and did not say where");
    return code;
}

/* One request: the bytes from s->sent on, or, with `asks`, how many there are.  0: it has all. */
static int session_put(struct session *s, const struct exchange_env *env, bool asks,
                       struct backend_facts *facts, struct error *err)
{
    char range[RANGE_MAX];
    const unsigned long long size = s->u->size, at = s->sent;
    const struct exchange_file rest = {.fd = s->u->fd, .offset = at, .length = size - at};
    const struct backend_write write = {.content_range = range};
    const struct backend_ask ask = {
        .verb = BACKEND_SESSION_SEND, .name = s->u->name, .url = s->url, .write = &write};
    struct exchange_reply reply;
    _cleanup_buf_ struct buf tag = BUF_INIT;
    if (asks || at == size)
        snprintf(range, sizeof range, "bytes */%llu", size);
    else
        snprintf(range, sizeof range, "bytes %llu-%llu/%llu", at, size - 1, size);
    int code =
        exchange_send(env, s->u->backend_url, &ask, asks || at == size ? NULL : &rest, &reply, err);
    *facts = reply.facts;
    if (code == 0)
        code = s->ops->end_etag(buf_str(&reply.body), reply.body.len, &tag, err);
    if (code == 0)
        snprintf(s->etag, BACKEND_ETAG_MAX, "%s", buf_str(&tag));
    buf_done(&reply.body);
    return code;
}

/* Is there anything to go on with?  A cut one has said nothing, or a good status and no more. */
static bool may_go_on(const struct backend_facts *facts)
{
    return facts->status < 300 || facts->status == MORE || failure_is_passing(facts->status, 0);
}

/* How far it has come: 0 (*done: it has all), or why it cannot be told. */
static int session_look(struct session *s, bool *done, struct error *err)
{
    struct backend_facts facts;
    int code = session_put(s, s->env, true, &facts, err);
    *done = code == 0;
    if (code == 0)
        return 0;
    if (facts.status != MORE)
        return code;
    if (facts.offset > s->u->size)
        return error_set(err, E_BACKEND, "the backend says it has more than there is");
    s->sent = facts.offset;
    *err = ERROR_INIT;
    return 0;
}

static bool session_wait(struct session *s)
{
    uint64_t luck, wait_ms;
    random_bytes(&luck, sizeof luck);
    return failure_wait(&s->env->rules, ++s->done, 0, luck, &wait_ms) &&
           s->env->wait(s->env->ctx, wait_ms);
}

static int session_send(struct session *s, struct error *err)
{
    struct exchange_env once = *s->env;
    once.once = true;
    for (bool done = false;;) {
        struct backend_facts facts;
        struct error why = ERROR_INIT;
        int code = session_put(s, &once, false, &facts, err);
        if (code == 0 || !may_go_on(&facts) || !session_wait(s))
            return code;
        if ((code = session_look(s, &done, &why)) != 0)
            return error_set(err, code, "%s", why.message);
        *err = ERROR_INIT;
        if (done)
            return 0;
    }
}

static void session_abort(const struct session *s)
{
    const struct backend_ask ask = {
        .verb = BACKEND_SESSION_ABORT, .name = s->u->name, .url = s->url};
    struct exchange_reply reply;
    struct error err = ERROR_INIT;
    int code = exchange_send(s->env, s->u->backend_url, &ask, NULL, &reply, &err);
    buf_done(&reply.body);
    if (code != 0 && code != E_OBJECT_NOT_FOUND && reply.facts.status != ABORTED)
        log_warn("upload not aborted", lstr("name", s->u->name), lerr(&err));
}

int upload_session(const struct exchange_env *env, const struct upload *u,
                   const struct checksum_value *md5, char etag[static BACKEND_ETAG_MAX],
                   struct error *err)
{
    struct session s = {.env = env, .u = u, .ops = &backend_gcs, .etag = etag};
    int code = session_begin(&s, md5, err);
    if (code == 0 && (code = session_send(&s, err)) != 0)
        session_abort(&s);
    free(s.url);
    return code;
}
