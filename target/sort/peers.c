#include "target/sort/peers.h"

#include <assert.h>
#include <pthread.h>

#include "common/mem.h"

/* A call under way.  An upload's end is waited for by the thread that writes it, which frees it; a
 * fetch frees itself. */
struct peer_call {
    struct sort_peers *peers;
    struct peer_call *next, **prev;
    struct http_client *client;
    uint64_t number; /* for http_call_cancel() */
    char *url;
    bool done;
    struct error err;
};

struct sort_peers {
    struct http_client *client;
    struct http_client *outside; /* for hosts that clients name */
    char *job_id;
    unsigned long long attempt;
    unsigned self;
    size_t pipe_bytes;
    size_t count;
    char **ids;
    char **urls; /* "http://127.0.0.1:9003" */

    pthread_mutex_t lock; /* guards what follows, and the calls */
    pthread_cond_t changed;
    struct peer_call *calls;
    bool stopped;
};

const char *sort_channel_name(enum sort_channel channel)
{
    return channel == SORT_CHANNEL_MERGE ? "merge" : "orders";
}

struct sort_peers *sort_peers_new(struct http_client *client, struct http_client *outside,
                                  const struct sort_plan *plan, const struct job *job,
                                  unsigned self, size_t pipe_bytes)
{
    struct sort_peers *p = xcalloc(1, sizeof *p);
    *p = (struct sort_peers){.client = client,
                             .outside = outside,
                             .job_id = xstrdup(job->id),
                             .attempt = job->attempt,
                             .self = self,
                             .pipe_bytes = pipe_bytes,
                             .count = plan->count,
                             .ids = xcalloc(plan->count, sizeof(char *)),
                             .urls = xcalloc(plan->count, sizeof(char *))};
    for (size_t i = 0; i < plan->count; i++) {
        p->ids[i] = xstrdup(plan->ids[i]);
        p->urls[i] = xstrdup(plan->data_urls[i]);
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    return p;
}

void sort_peers_find(struct sort_peers *p, unsigned number, const char *data_url)
{
    free(p->urls[number]);
    p->urls[number] = xstrdup(data_url);
}

void sort_peers_stop(struct sort_peers *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopped = true;
    for (struct peer_call *c = p->calls; c != NULL; c = c->next) {
        if (!c->done)
            http_call_cancel(c->client, c->number);
    }
    pthread_mutex_unlock(&p->lock);
}

void sort_peers_free(struct sort_peers *p)
{
    if (p == NULL)
        return;
    sort_peers_stop(p);
    pthread_mutex_lock(&p->lock);
    while (p->calls != NULL)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    for (size_t i = 0; i < p->count; i++) {
        free(p->ids[i]);
        free(p->urls[i]);
    }
    free(p->ids);
    free(p->urls);
    free(p->job_id);
    free(p);
}

/* --- calls: with the lock held ---------------------------------------------------------------- */

static void call_drop(struct peer_call *c)
{
    *c->prev = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    pthread_cond_broadcast(&c->peers->changed);
    free(c->url);
    free(c);
}

/* Takes over the URL. */
static struct peer_call *call_new(struct sort_peers *p, char *url)
{
    struct peer_call *c = xcalloc(1, sizeof *c);
    *c = (struct peer_call){
        .peers = p, .client = p->client, .url = url, .next = p->calls, .prev = &p->calls};
    if (c->next != NULL)
        c->next->prev = &c->next;
    p->calls = c;
    return c;
}

static int check_peer(const struct sort_peers *p, unsigned number, struct error *err)
{
    if (number >= p->count)
        return error_set(err, E_INTERNAL, "job '%s' has no target number %u", p->job_id, number);
    if (p->stopped)
        return error_set(err, E_ABORTED, "job '%s' was stopped", p->job_id);
    return 0;
}

/* --- streams to a peer ------------------------------------------------------------------------ */

static void upload_done(void *arg, struct http_result *r)
{
    struct peer_call *c = arg;
    struct sort_peers *p = c->peers;
    pthread_mutex_lock(&p->lock);
    http_result_error(r, c->url, &c->err);
    c->done = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

int sort_peers_send_begin(struct sort_peers *p, unsigned to, enum sort_channel channel,
                          struct bpipe **pipe, void **handle, struct error *err)
{
    pthread_mutex_lock(&p->lock);
    int code = check_peer(p, to, err);
    if (code == 0) {
        struct peer_call *c =
            call_new(p, xprintf("%s/v1/xactions/%s/%s?from=%u&attempt=%llu", p->urls[to], p->job_id,
                                sort_channel_name(channel), p->self, p->attempt));
        *pipe = bpipe_new(p->pipe_bytes);
        *handle = c;
        const struct http_call call = {
            .method = HTTP_POST,
            .url = c->url,
            .node = p->ids[to],
            .upload = *pipe,
            .upload_length = -1,
            .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT, /* the peer may still be extracting */
        };
        c->number = http_call_start(p->client, &call, upload_done, c);
    }
    pthread_mutex_unlock(&p->lock);
    return code;
}

int sort_peers_send_end(struct sort_peers *p, void *handle, struct error *err)
{
    struct peer_call *c = handle;
    pthread_mutex_lock(&p->lock);
    while (!c->done)
        pthread_cond_wait(&p->changed, &p->lock);
    int code = c->err.code;
    if (code != 0 && err != NULL)
        *err = c->err;
    call_drop(c);
    pthread_mutex_unlock(&p->lock);
    return code;
}

/* --- records from a peer ---------------------------------------------------------------------- */

/* The reader learns of a failure through the pipe. */
static void fetch_done(void *arg, struct http_result *r)
{
    (void)r;
    struct peer_call *c = arg;
    struct sort_peers *p = c->peers;
    pthread_mutex_lock(&p->lock);
    call_drop(c);
    pthread_mutex_unlock(&p->lock);
}

static int get_by(struct sort_peers *p, struct http_client *client, const char *node,
                  const char *url, struct bpipe **pipe, struct error *err)
{
    pthread_mutex_lock(&p->lock);
    int code = p->stopped ? error_set(err, E_ABORTED, "job '%s' was stopped", p->job_id) : 0;
    if (code == 0) {
        struct peer_call *c = call_new(p, xstrdup(url));
        c->client = client;
        *pipe = bpipe_new(p->pipe_bytes);
        const struct http_call call = {
            .method = HTTP_GET, .url = c->url, .node = node, .download = *pipe};
        c->number = http_call_start(client, &call, fetch_done, c);
    }
    pthread_mutex_unlock(&p->lock);
    return code;
}

int sort_peers_get(struct sort_peers *p, const char *node, const char *url, struct bpipe **pipe,
                   struct error *err)
{
    return get_by(p, p->client, node, url, pipe, err);
}

int sort_peers_get_outside(struct sort_peers *p, const char *url, struct bpipe **pipe,
                           struct error *err)
{
    return get_by(p, p->outside, NULL, url, pipe, err);
}

int sort_peers_fetch_records(struct sort_peers *p, unsigned from, const void *request, size_t len,
                             struct bpipe **pipe, struct error *err)
{
    pthread_mutex_lock(&p->lock);
    int code = check_peer(p, from, err);
    if (code == 0) {
        struct peer_call *c = call_new(p, xprintf("%s/v1/xactions/%s/records?attempt=%llu",
                                                  p->urls[from], p->job_id, p->attempt));
        *pipe = bpipe_new(p->pipe_bytes);
        const struct http_call call = {.method = HTTP_POST,
                                       .url = c->url,
                                       .node = p->ids[from],
                                       .body = request,
                                       .body_len = len,
                                       .download = *pipe,
                                       .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT};
        c->number = http_call_start(p->client, &call, fetch_done, c);
    }
    pthread_mutex_unlock(&p->lock);
    return code;
}
