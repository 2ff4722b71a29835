/* A page of names from the backend of a bucket, for a proxy that merges it with what is cached
 * (proxy/list/merge.h).
 *
 * One target asks for all (the proxy chooses it by the bucket): the backend has one order of names,
 * and whoever asks it gets the same pages.  Nothing is kept between pages: the next one begins
 * behind the last name of this one (`start-after`), so that a list of any length takes the memory
 * of a page, goes on whatever has restarted meanwhile, and prefix and delimiter are the backend's
 * work.  Only the pages of jobs, which several targets go through, are kept for a while
 * (list_pages.h): who asks for one that another asker has begun to read waits for that one. */
#include "target/cold/list.h"

#include <pthread.h>
#include <string.h>

#include "cluster/documents/job.h"
#include "common/internal_name.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/parse.h"
#include "target/cold/internal.h"
#include "target/cold/list_pages.h"
#include "target/node/member.h"

/* A backend may answer with empty pages that lead on; and the one item that begins a page may be
 * the common prefix that the page before ended with. */
enum { ASKS_MAX = 64, LIST_PAGE_MAX = 10000, LIMIT_DEFAULT = 1000 };

struct cold_list {
    struct list_asker asker; /* of a job: the first */
    struct http_request *req;
    struct target *target;
    struct cold_list_ask ask;
    struct list_reading *reading; /* … and what it is to read for all */
};

/* --- the answer ------------------------------------------------------------------------------- */

static void put_text(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, "%s\"", name);
    buf_put_json_escaped(out, text, strlen(text));
    buf_putc(out, '"');
}

static void put_entry(struct buf *out, const struct backend_entry *e)
{
    put_text(out, "{\"name\":", e->name);
    buf_printf(out, ",\"size\":%llu,\"version\":\"0.0.0\"", (unsigned long long)e->size);
    put_text(out, ",\"etag\":", e->etag);
    buf_printf(out, ",\"modified_ms\":%lld,\"cached\":false}", (long long)e->modified_ms);
}

static const char *greater(const char *a, const char *b)
{
    return strcmp(a, b) > 0 ? a : b;
}

/* Where the next page begins. */
static const char *last_of(const struct backend_page *page)
{
    const char *last = "";
    if (page->entry_count > 0)
        last = page->entries[page->entry_count - 1].name;
    if (page->prefix_count > 0)
        last = greater(last, page->prefixes[page->prefix_count - 1]);
    return last;
}

/* What is not behind `after` was on an earlier page. */
static bool is_put(const struct cold_list_ask *ask, const char *name)
{
    return strcmp(name, ask->start_after) > 0 && !(ask->skips_internal && name_is_internal(name));
}

static void put_page(struct buf *out, const struct backend_page *page,
                     const struct cold_list_ask *ask)
{
    size_t put = 0;
    buf_puts(out, "{\"entries\":[");
    for (size_t i = 0; i < page->entry_count; i++) {
        if (!is_put(ask, page->entries[i].name))
            continue;
        buf_puts(out, put++ > 0 ? "," : "");
        put_entry(out, &page->entries[i]);
    }
    buf_puts(out, "],\"prefixes\":[");
    put = 0;
    for (size_t i = 0; i < page->prefix_count; i++) {
        if (!is_put(ask, page->prefixes[i]))
            continue;
        put_text(out, put++ > 0 ? "," : "", page->prefixes[i]);
    }
    put_text(out, "],\"next\":", page->token != NULL ? last_of(page) : "");
    buf_putc(out, '}');
}

/* --- the question ----------------------------------------------------------------------------- */

static int ask_once(struct target *t, const char *backend, const struct backend_list_ask *list,
                    struct backend_page *page, struct error *err)
{
    struct backend_spec spec;
    struct exchange_reply reply;
    const struct backend_ask ask = {.verb = BACKEND_LIST, .name = "", .list = list};
    int code = backend_parse(backend, page->arena, &spec, err);
    if (code != 0)
        return code;
    code = exchange_send(&t->cold->env, backend, &ask, NULL, &reply, err);
    if (code == 0)
        code = backend_ops_of(spec.provider)
                   ->page(&spec, buf_str(&reply.body), reply.body.len, page, err);
    else if (code == E_OBJECT_NOT_FOUND) /* who asks for names does not ask for this one */
        error_recode(err, code = E_BACKEND, "list");
    buf_done(&reply.body);
    return code;
}

/* Until there is something new, or no more.  With a delimiter `from` may lie in a common prefix
 * that has not been shown yet; and one item may be a common prefix that has been. */
static int ask_page(struct target *t, const struct cold_list_ask *ask, struct backend_page *page,
                    struct error *err)
{
    struct backend_list_ask list = {.prefix = ask->prefix,
                                    .delimiter = ask->delimiter,
                                    .start_after = greater(ask->start_after, ask->from),
                                    .limit = ask->limit + 1};
    for (int asks = 0; asks < ASKS_MAX; asks++) {
        page->token = NULL;
        int code = ask_once(t, ask->backend, &list, page, err);
        if (code != 0 || page->token == NULL || strcmp(last_of(page), ask->start_after) > 0)
            return code;
        list.token = page->token;
    }
    return error_set(err, E_BACKEND, "the backend's list has %d pages in a row without a name",
                     ASKS_MAX);
}

static int read_text(struct target *t, const struct cold_list_ask *ask, struct buf *out,
                     struct error *err)
{
    _cleanup_arena_ struct arena *a = arena_new(64 << 10);
    struct backend_page page = {.arena = a};
    int code = ask_page(t, ask, &page, err);
    if (code == 0)
        put_page(out, &page, ask);
    return code;
}

/* --- of a job: read once for all -------------------------------------------------------------- */

static void put_key(struct buf *key, const char *text)
{
    buf_append(key, text, strlen(text) + 1);
}

static struct list_reading *ask_pages(struct target *t, const struct cold_list_ask *ask,
                                      struct list_asker *asker)
{
    _cleanup_buf_ struct buf key = BUF_INIT;
    buf_printf(&key, "%llu %llu %zu %d ", (unsigned long long)ask->attempt,
               (unsigned long long)ask->bucket_id, ask->limit, ask->skips_internal);
    put_key(&key, ask->backend);
    put_key(&key, ask->prefix);
    put_key(&key, ask->delimiter);
    put_key(&key, ask->from);
    put_key(&key, ask->start_after);
    const struct list_wanted wanted = {.job = ask->job,
                                       .key = key.data,
                                       .key_len = key.len,
                                       .now_ms = clock_ms(),
                                       .max_age_ms = ask->max_age_ms};
    return list_pages_ask(t->cold->pages, &wanted, asker);
}

static void read_for_all(struct target *t, const struct cold_list_ask *ask,
                         struct list_reading *reading)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    struct error err = ERROR_INIT;
    int code = read_text(t, ask, &text, &err);
    if (code != 0 && cold_is_stopping(t->cold)) /* then it says nothing of the backend */
        error_recode(&err, E_NOT_READY, "this target is stopping");
    if (code != 0)
        log_warn("backend not listed", lerr(&err));
    list_pages_read(t->cold->pages, reading, &text, code != 0 ? &err : NULL);
}

struct waiter {
    struct list_asker asker; /* the first */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool answered;
    struct buf *out;
    struct error err;
};

static void wake(struct list_asker *asker, const struct buf *text, const struct error *err)
{
    struct waiter *w = (struct waiter *)asker;
    pthread_mutex_lock(&w->lock);
    if (err != NULL)
        w->err = *err;
    else
        buf_append(w->out, text->data, text->len);
    w->answered = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

int cold_list_text(struct target *t, const struct cold_list_ask *ask, struct buf *out,
                   struct error *err)
{
    struct waiter w = {.asker = {.fn = wake},
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .changed = PTHREAD_COND_INITIALIZER,
                       .out = out,
                       .err = ERROR_INIT};
    struct list_reading *reading = ask_pages(t, ask, &w.asker);
    if (reading != NULL)
        read_for_all(t, ask, reading);
    pthread_mutex_lock(&w.lock);
    while (!w.answered)
        pthread_cond_wait(&w.changed, &w.lock);
    pthread_mutex_unlock(&w.lock);
    pthread_cond_destroy(&w.changed);
    pthread_mutex_destroy(&w.lock);
    return w.err.code != 0 ? error_set(err, w.err.code, "%s", w.err.message) : 0;
}

static bool is_over(const void *ctx, const char *job_id)
{
    const struct job *job = jobs_find(ctx, job_id);
    return job == NULL || job_ended(job->state);
}

void cold_list_forget(struct cold *c, const struct jobs *jobs)
{
    if (c != NULL)
        list_pages_forget(c->pages, is_over, jobs);
}

/* --- the route -------------------------------------------------------------------------------- */

static void reply_text(struct http_request *req, const struct buf *text, const struct error *err)
{
    if (err != NULL)
        http_reply_error(req, err);
    else
        http_reply_data(req, 200, "application/json", text->data, text->len);
}

static void reply_kept(struct list_asker *asker, const struct buf *text, const struct error *err)
{
    reply_text(((struct cold_list *)asker)->req, text, err);
}

/* The request is over as soon as it is answered, which a page of a job does: what is needed after
 * that is copied. */
static void list_run(void *arg)
{
    struct cold_list *l = arg;
    _cleanup_buf_ struct buf text = BUF_INIT;
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(l->req));
    if (l->reading != NULL) {
        read_for_all(l->target, &l->ask, l->reading);
    } else if (read_text(l->target, &l->ask, &text, &err) == 0) {
        reply_text(l->req, &text, NULL);
    } else {
        log_warn("backend not listed", lerr(&err));
        reply_text(l->req, NULL, &err);
    }
    log_set_request(NULL);
}

static const char *text_query(const struct http_request *req, const char *name)
{
    const char *text = http_query(req, name);
    return text != NULL ? text : "";
}

static int number_query(const struct http_request *req, const char *name, uint64_t *out,
                        struct error *err)
{
    const char *text = http_query(req, name);
    int code = text != NULL ? parse_u64(text, out, err) : 0;
    return code != 0 ? error_recode(err, code, "parameter '%s'", name) : 0;
}

static int parse_list(struct cold_list *l, struct error *err)
{
    uint64_t limit = LIMIT_DEFAULT;
    l->ask = (struct cold_list_ask){.prefix = text_query(l->req, "prefix"),
                                    .delimiter = text_query(l->req, "delimiter"),
                                    .start_after = text_query(l->req, "start_after"),
                                    .from = text_query(l->req, "from"),
                                    .job = http_query(l->req, "job")};
    int code = parse_u64(http_path_param(l->req, "bucket_id"), &l->ask.bucket_id, err);
    if (code == 0)
        code = number_query(l->req, "limit", &limit, err);
    if (code == 0 && (limit < 1 || limit > LIST_PAGE_MAX))
        code = error_set(err, E_INVALID, "parameter 'limit' is not within 1 and %d", LIST_PAGE_MAX);
    if (code == 0)
        code = number_query(l->req, "attempt", &l->ask.attempt, err);
    if (code == 0)
        code = number_query(l->req, "max_age_ms", &l->ask.max_age_ms, err);
    const char *skips = http_query(l->req, "skip_internal");
    if (code == 0 && skips != NULL && parse_bool(skips, &l->ask.skips_internal, err) != 0)
        code = error_recode(err, E_INVALID, "parameter 'skip_internal'");
    l->ask.limit = limit;
    return code;
}

/* A page for a job that is not known, or over, would not be forgotten again. */
static int find_backend(struct cold_list *l, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(l->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, l->ask.bucket_id);
    if (b == NULL || b->props.backend == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "bucket %llu does not exist, or has no backend",
                         (unsigned long long)l->ask.bucket_id);
    l->ask.backend = arena_strdup(http_arena(l->req), b->props.backend);
    if (l->ask.job != NULL && is_over(&s->jobs, l->ask.job))
        l->ask.job = NULL;
    return 0;
}

static void list_start(void *arg)
{
    struct cold_list *l = arg;
    const struct cold_threads *askers = &l->target->cold->askers;
    struct error err = ERROR_INIT;
    if (parse_list(l, &err) != 0 || find_backend(l, &err) != 0) {
        http_reply_error(l->req, &err);
        return;
    }
    if (l->ask.job == NULL) {
        if (cold_submit(askers, l->ask.backend, list_run, l, &err) != 0)
            http_reply_error(l->req, &err);
        return;
    }
    l->asker.fn = reply_kept;
    struct list_reading *reading = ask_pages(l->target, &l->ask, &l->asker);
    if (reading == NULL) /* it has been answered, or will be */
        return;
    l->reading = reading;
    if (cold_submit(askers, l->ask.backend, list_run, l, &err) != 0)
        list_pages_read(l->target->cold->pages, reading, NULL, &err);
}

static void list_begin(struct http_request *req)
{
    struct cold_list *l = arena_alloc(http_arena(req), sizeof *l);
    struct error err = ERROR_INIT;
    bool ahead;
    *l = (struct cold_list){.req = req, .target = http_user(req)};
    if (sender_is_ahead(req, &ahead, &err) != 0)
        http_reply_error(req, &err);
    else if (ahead) /* it may know a bucket, or a backend, that we do not know yet */
        member_refresh(l->target->member, http_query(req, "dfcv"), list_start, l);
    else
        list_start(l);
}

const struct http_route cold_list_routes[] = {
    {.name = "backend_list",
     .method = HTTP_GET,
     .pattern = "/v1/list/{bucket_id}/backend",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = list_begin,
     .summary = "A page of the names that a bucket's backend has, in bytewise order.",
     .query = HTTP_PARAMETERS({"prefix", "text"}, {"delimiter", "text"}, {"start_after", "name"},
                              {"limit", "1 to 10000 (default 1000)"},
                              {"from", "that of the page before"},
                              {"dfcv", "the sender's state version"},
                              {"skip_internal", "true: without names that begin with `.dfc-`"},
                              {"job", "id: pages are kept for its other targets until it ends"},
                              {"attempt", "of the job, from 0"},
                              {"max_age_ms", "of those pages none that is older (0: of any age)"}),
     .body = "",
     .reply =
         "`{\"entries\": [{\"name\", \"size\", \"version\": \"0.0.0\", \"etag\", "
         "\"modified_ms\", \"cached\": false}], \"prefixes\", \"next\"}`; pages may be shorter "
         "than `limit`: the last one has no `next`",
     .errors = "invalid_argument bucket_not_found not_supported backend_denied backend_error "
               "backend_unavailable backend_timeout"},
    {.name = NULL},
};
