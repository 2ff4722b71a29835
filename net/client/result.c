/* What a call came to, and the calls that wait for it. */
#include <assert.h>
#include <pthread.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "net/client/client.h"

void http_result_done(struct http_result *r)
{
    buf_done(&r->body);
}

/* --- the error in a reply --------------------------------------------------------------------- */

static int error_of_document(const struct http_result *r, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    if (r->body.len == 0 || json_parse(r->body.data, r->body.len, &doc, NULL) != 0)
        return 0;
    const char *code = json_string_value(json_object_get(doc, "code"));
    const char *message = json_string_value(json_object_get(doc, "message"));
    const char *node = json_string_value(json_object_get(doc, "node"));
    int number = code != NULL ? error_from_name(code) : 0;
    if (number == 0 || message == NULL)
        return 0;
    return error_set(err, number, "%s: %s", node != NULL ? node : "peer", message);
}

int http_result_error(const struct http_result *r, const char *url, struct error *err)
{
    if (r->code != 0) {
        if (err != NULL)
            *err = r->err;
        return r->code;
    }
    if (r->status >= 200 && r->status < 300)
        return 0;
    int code = error_of_document(r, err);
    return code != 0 ? code : error_set(err, E_NET, "%s answered with status %d", url, r->status);
}

/* --- blocking calls --------------------------------------------------------------------------- */

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

int http_json_wait(struct http_client *client, enum http_method method, const char *url,
                   const json_t *in, uint64_t timeout_ms, json_t **out, struct error *err)
{
    static const char *const json_headers[] = {"Content-Type: application/json", NULL};
    _cleanup_free_ char *body = in != NULL ? json_text(in) : NULL;
    const struct http_call spec = {.method = method,
                                   .url = url,
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
