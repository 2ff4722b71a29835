#include "target/cold/pages.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "cluster/documents/job.h"
#include "cluster/documents/state.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "net/client/client.h"
#include "target/cold/list.h"
#include "target/cold/list_owner.h"
#include "target/node/target.h"

/* The backend is asked for one more (cold/list.c), and 1000 is what S3 gives. */
enum { PAGE = 999, PAGE_BYTES_MAX = 32 << 20 };
/* Where writes go back: about as long as an upload and an eviction take that follow each other. */
enum { MERGED_AGE_MS = 5000 };
enum { LOOK_MS = 100 };

void cold_pages_done(struct cold_pages *p)
{
    while (p->lost_count > 0)
        free(p->lost[--p->lost_count]);
}

/* --- what is asked ---------------------------------------------------------------------------- */

static int make_ask(const struct cold_pages *p, const struct cluster_state *s, const char *after,
                    struct cold_list_ask *out, struct error *err)
{
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, p->bucket_id);
    if (b == NULL || b->props.backend == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed while the job ran");
    bool ages = p->merged && b->props.write_policy == WRITE_POLICY_BACK;
    *out = (struct cold_list_ask){.bucket_id = p->bucket_id,
                                  .backend = b->props.backend,
                                  .prefix = p->prefix,
                                  .delimiter = "",
                                  .start_after = after,
                                  .from = "",
                                  .skips_internal = p->skips_internal,
                                  .limit = PAGE,
                                  .job = p->job->id,
                                  .attempt = p->job->attempt,
                                  .max_age_ms = ages ? MERGED_AGE_MS : 0};
    return 0;
}

static void put_text_query(struct buf *url, const char *name, const char *value)
{
    buf_printf(url, "&%s=", name);
    buf_put_url_escaped(url, value, strlen(value), "");
}

static void make_url(struct buf *url, const struct cluster_state *s, const struct node *owner,
                     const struct cold_list_ask *ask)
{
    buf_printf(url, "%s/v1/list/%llu/backend?dfcv=%llu.%llu&limit=%zu&attempt=%llu&max_age_ms=%llu",
               owner->data_url, (unsigned long long)ask->bucket_id, (unsigned long long)s->term,
               (unsigned long long)s->version, ask->limit, (unsigned long long)ask->attempt,
               (unsigned long long)ask->max_age_ms);
    put_text_query(url, "job", ask->job);
    put_text_query(url, "prefix", ask->prefix);
    put_text_query(url, "start_after", ask->start_after);
    put_text_query(url, "skip_internal", ask->skips_internal ? "true" : "false");
}

/* --- who answers ------------------------------------------------------------------------------ */

struct question {
    const char *url;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool answered;
    int code;
    json_t *page;
    struct error err;
};

static void answered(void *arg, struct http_result *r)
{
    struct question *q = arg;
    pthread_mutex_lock(&q->lock);
    q->code = http_result_error(r, q->url, &q->err);
    if (q->code == 0)
        q->code = json_parse(buf_str(&r->body), r->body.len, &q->page, &q->err);
    q->answered = true;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

/* An owner that hangs holds up neither who aborts the job nor who stops this target. */
static void await_answer(const struct cold_pages *p, struct question *q, uint64_t number)
{
    pthread_mutex_lock(&q->lock);
    while (!q->answered) {
        const struct timespec until = clock_after(LOOK_MS);
        pthread_cond_timedwait(&q->changed, &q->lock, &until);
        if (!q->answered && atomic_load(p->stop))
            http_call_cancel(p->target->data_client, number);
    }
    pthread_mutex_unlock(&q->lock);
}

static void question_init(struct question *q, const char *url)
{
    *q = (struct question){.url = url, .err = ERROR_INIT};
    pthread_mutex_init(&q->lock, NULL);
    condition_init(&q->changed);
}

static int ask_owner(const struct cold_pages *p, const struct cluster_state *s,
                     const struct node *owner, const struct cold_list_ask *ask, json_t **out,
                     struct error *err)
{
    _cleanup_buf_ struct buf url = BUF_INIT;
    make_url(&url, s, owner, ask);
    const struct http_call call = {
        .method = HTTP_GET, .url = buf_str(&url), .node = owner->id, .reply_max = PAGE_BYTES_MAX};
    struct question q;
    question_init(&q, call.url);
    await_answer(p, &q, http_call_start(p->target->data_client, &call, answered, &q));
    pthread_cond_destroy(&q.changed);
    pthread_mutex_destroy(&q.lock);
    *out = q.page;
    *err = q.err;
    return q.code;
}

static int ask_here(const struct cold_pages *p, const struct cold_list_ask *ask, json_t **out,
                    struct error *err)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    int code = cold_list_text(p->target, ask, &text, err);
    return code != 0 ? code : json_parse(buf_str(&text), text.len, out, err);
}

/* Does it tell of the backend, and not of the target that was asked? */
static bool is_of_backend(int code)
{
    return code == E_BACKEND || code == E_BACKEND_DENIED || code == E_BACKEND_BUSY ||
           code == E_BACKEND_TIMEOUT;
}

/* The owner by this state, unless it is this target. */
static const struct node *other_owner(const struct cold_pages *p, const struct cluster_state *s)
{
    const struct list_of_job list = {
        .job = p->job->id, .bucket_id = p->bucket_id, .prefix = p->prefix};
    const char *lost[COLD_PAGES_LOST_MAX];
    for (size_t i = 0; i < p->lost_count; i++)
        lost[i] = p->lost[i];
    const struct node *owner =
        p->lost_count < COLD_PAGES_LOST_MAX ? list_owner(s, &list, lost, p->lost_count) : NULL;
    return owner != NULL && strcmp(owner->id, p->target->id) != 0 ? owner : NULL;
}

int cold_pages_read(struct cold_pages *p, const char *after, json_t **out, struct error *err)
{
    for (;;) {
        _cleanup_state_ const struct cluster_state *s = state_current(p->target->state);
        struct cold_list_ask ask;
        struct error why = ERROR_INIT;
        int code = make_ask(p, s, after, &ask, err);
        const struct node *owner = code == 0 ? other_owner(p, s) : NULL;
        if (code != 0 || owner == NULL)
            return code != 0 ? code : ask_here(p, &ask, out, err);
        code = ask_owner(p, s, owner, &ask, out, &why);
        if (code == 0)
            return 0;
        if (atomic_load(p->stop))
            return error_set(err, E_ABORTED, "the job was stopped");
        if (is_of_backend(code))
            return error_set(err, code, "%s", why.message);
        log_warn("another target does not list the backend", lerr(&why));
        p->lost[p->lost_count++] = xstrdup(owner->id);
    }
}
