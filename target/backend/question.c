#include "target/backend/question.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "target/backend/failure.h"

enum { ANSWER_MAX = 64 << 10 };

struct wait {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
    struct answer *answer;
};

/* Both in the loop's thread. */
static void take_head(void *arg, const struct http_head *head)
{
    struct wait *w = arg;
    const char *flavour = head->header(head, "Metadata-Flavor");
    w->answer->is_google = flavour != NULL && strcmp(flavour, "Google") == 0;
}

/* "GET URL: why" without the URL. */
static void keep_why(struct answer *n, const char *message)
{
    const char *last = NULL;
    for (const char *at = message; (at = strstr(at, ": ")) != NULL; at += 2)
        last = at + 2;
    snprintf(n->why, sizeof n->why, "%s", last != NULL ? last : "the connection failed");
}

static void take_end(void *arg, struct http_result *r)
{
    struct wait *w = arg;
    pthread_mutex_lock(&w->lock);
    w->answer->code = r->code;
    if (r->code != 0)
        keep_why(w->answer, r->err.message);
    w->answer->status = r->status;
    w->answer->body = r->body;
    r->body = BUF_INIT;
    w->over = true;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
}

void question_ask(struct http_client *client, const struct question *q, struct answer *out)
{
    const bool has_body = q->method == HTTP_POST || q->method == HTTP_PUT;
    struct wait w = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER, .answer = out};
    const struct http_call call = {.method = q->method,
                                   .url = q->url,
                                   .headers = q->headers,
                                   .body = has_body ? q->body : NULL,
                                   .body_len = has_body ? strlen(q->body) : 0,
                                   .reply_max = ANSWER_MAX,
                                   .total_timeout_ms = q->timeout_ms,
                                   .on_head = take_head};
    *out = (struct answer){.status = 0};
    http_call_start(client, &call, take_end, &w);
    pthread_mutex_lock(&w.lock);
    while (!w.over)
        pthread_cond_wait(&w.ended, &w.lock);
    pthread_mutex_unlock(&w.lock);
    pthread_cond_destroy(&w.ended);
    pthread_mutex_destroy(&w.lock);
}

bool answer_is_good(const struct answer *n)
{
    return n->code == 0 && n->status >= 200 && n->status <= 299;
}

bool answer_is_passing(const struct answer *n)
{
    return failure_is_passing(n->status, n->code);
}

static int transport_refusal(const struct question *q, const struct answer *n, struct error *err)
{
    if (n->code == E_CANCELLED)
        return failure_of_transport(n->code, "", err);
    if (n->code == E_TIMEOUT)
        return error_set(err, E_BACKEND_TIMEOUT, "%s did not answer in time", q->who);
    if (n->code == E_TOO_LARGE)
        return error_set(err, E_BACKEND, "%s: the answer is too long", q->who);
    return error_set(err, E_BACKEND, "%s could not be asked: %s", q->who, n->why);
}

/* Other errors are of objects, of which the client would think. */
static int code_of_status(int status, const char *words)
{
    int code = status == 400 ? E_BACKEND_DENIED : failure_of_status(status, words, NULL, NULL);
    switch (code) {
    case E_BACKEND_DENIED:
    case E_BACKEND_BUSY:
    case E_BACKEND_TIMEOUT:
        return code;
    default:
        return E_BACKEND;
    }
}

int answer_refusal(const struct question *q, const struct answer *n, const char *words,
                   struct error *err)
{
    if (n->code != 0)
        return transport_refusal(q, n, err);
    return error_set(err, code_of_status(n->status, words), "%s answered with status %d%s%s",
                     q->who, n->status, *words != '\0' ? ": " : "", words);
}

static void wipe(char *text)
{
    if (text != NULL)
        OPENSSL_cleanse(text, strlen(text));
}

void question_wipe(struct question *q)
{
    wipe(q->body);
    wipe(q->secret_line);
}

void answer_done(struct answer *n)
{
    if (n->body.len > 0)
        OPENSSL_cleanse(n->body.data, n->body.len);
    buf_done(&n->body);
}
