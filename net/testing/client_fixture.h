/* A client in a loop of its own, and calls whose ends can be waited for: for tests. */
#pragma once

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "common/fault.h"
#include "common/mem.h"
#include "io/loop.h"
#include "net/client/client.h"
#include "net/testing/peer.h"

enum { STALL_MS = 2000, CALL_PATIENCE_S = 20 };

static struct {
    struct loop *loop;
    struct http_client *client;
} fx;

static inline int fixture_setup(void **state)
{
    (void)state;
    const struct http_client_config config = {.connect_timeout_ms = 2000,
                                              .stall_timeout_ms = STALL_MS};
    assert_int_equal(loop_new("client", &fx.loop, NULL), 0);
    assert_int_equal(http_client_new(fx.loop, &config, &fx.client, NULL), 0);
    return 0;
}

static inline int fixture_teardown(void **state)
{
    (void)state;
    fault_configure(NULL, NULL);
    http_client_free(fx.client);
    loop_free(fx.loop);
    return 0;
}

#define client_test(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

static inline const char *url_of(const struct peer *p, const char *path)
{
    static _Thread_local char url[200];
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", p->port, path);
    return url;
}

/* What a call came to. */
struct outcome {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    int code; /* http_result_error()'s */
    int status;
    struct error err;
    struct buf body;
    char etag[80];
    bool not_sent, repeated;
};

static inline void outcome_init(struct outcome *o)
{
    *o = (struct outcome){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
}

static inline void outcome_done(void *arg, struct http_result *r)
{
    struct outcome *o = arg;
    pthread_mutex_lock(&o->lock);
    o->code = http_result_error(r, "url", &o->err);
    o->status = r->status;
    o->body = r->body;
    r->body = BUF_INIT;
    snprintf(o->etag, sizeof o->etag, "%s", r->etag);
    o->not_sent = r->not_sent;
    o->repeated = r->repeated;
    o->done = true;
    pthread_cond_signal(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

/* False: the call has not ended within so many seconds. */
static inline bool outcome_wait_for(struct outcome *o, int seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    pthread_mutex_lock(&o->lock);
    int rc = 0;
    while (!o->done && rc == 0)
        rc = pthread_cond_timedwait(&o->changed, &o->lock, &until);
    bool done = o->done;
    pthread_mutex_unlock(&o->lock);
    return done;
}

static inline void outcome_wait(struct outcome *o)
{
    if (!outcome_wait_for(o, CALL_PATIENCE_S))
        fail_msg("the call does not end");
}

static inline void outcome_free(struct outcome *o)
{
    buf_done(&o->body);
}

/* A call from beginning to end. */
static inline void call_whole(const struct http_call *call, struct outcome *o)
{
    outcome_init(o);
    http_call_start(fx.client, call, outcome_done, o);
    outcome_wait(o);
}

static inline void assert_ended(const struct outcome *o, int code, const char *words)
{
    if (o->code != code)
        fail_msg("the call ended with %s (%s), not with %s", error_name(o->code), o->err.message,
                 error_name(code));
    if (words != NULL && strstr(o->err.message, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, o->err.message);
}

/* The bytes of every stream of the tests. */
static inline char stream_byte(size_t at)
{
    return (char)(at * 2654435761u >> 13);
}

static inline void stream_fill(char *out, size_t at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        out[i] = stream_byte(at + i);
}

/* How many of the bytes are as they should be. */
static inline size_t stream_check(const char *data, size_t at, size_t len)
{
    size_t good = 0;
    while (good < len && data[good] == stream_byte(at + good))
        good++;
    return good;
}
