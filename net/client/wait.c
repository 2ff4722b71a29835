/* Calls whose caller waits for the result. */
#include <assert.h>
#include <pthread.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "net/client/client.h"

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    struct http_result *result;
};

static void wake_waiter(void *arg, struct http_result *r)
{
    struct waiter *w = arg;
    pthread_mutex_lock(&w->lock);
    *w->result = *r;
    r->body = BUF_INIT;
    w->done = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

int http_call_wait(struct http_client *client, const struct http_call *spec, struct http_result *r,
                   struct error *err)
{
    assert(spec->on_head == NULL);
    struct waiter w = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .result = r};
    http_call_start(client, spec, wake_waiter, &w);
    pthread_mutex_lock(&w.lock);
    while (!w.done)
        pthread_cond_wait(&w.changed, &w.lock);
    pthread_mutex_unlock(&w.lock);
    pthread_cond_destroy(&w.changed);
    pthread_mutex_destroy(&w.lock);
    return http_result_error(r, spec->url, err);
}

int http_json_wait(struct http_client *client, const char *node, enum http_method method,
                   const char *url, const json_t *in, uint64_t timeout_ms, json_t **out,
                   struct error *err)
{
    static const char *const json_headers[] = {"Content-Type: application/json", NULL};
    _cleanup_free_ char *body = in != NULL ? json_text(in) : NULL;
    const struct http_call spec = {.method = method,
                                   .url = url,
                                   .node = node,
                                   .headers = in != NULL ? json_headers : NULL,
                                   .body = body,
                                   .body_len = body != NULL ? strlen(body) : 0,
                                   .total_timeout_ms = timeout_ms};
    _cleanup_(http_result_done)
    struct http_result r = {0};
    int code = http_call_wait(client, &spec, &r, err);
    if (code == 0 && out != NULL)
        code = json_parse(buf_str(&r.body), r.body.len, out, err);
    return code;
}
