/* A page of names from the backend of a bucket, for a proxy that merges it with what is cached
 * (proxy/list_merge.h).
 *
 * One target asks for all (the proxy chooses it by the bucket): the backend has one order of names,
 * and whoever asks it gets the same pages.  Nothing is kept between pages: the next one begins
 * behind the last name of this one (`start-after`), so that a list of any length takes the memory
 * of a page, goes on whatever has restarted meanwhile, and prefix and delimiter are the backend's
 * work. */
#include "target/cold_internal.h"

#include <string.h>

#include "common/log.h"
#include "common/parse.h"
#include "target/member.h"
#include "target/object_routes.h"

/* A backend may answer with empty pages that lead on; and the one item that begins a page may be
 * the common prefix that the page before ended with. */
enum { ASKS_MAX = 64, LIST_PAGE_MAX = 10000, LIMIT_DEFAULT = 1000 };

struct cold_list {
    struct http_request *req;
    struct target *target;
    const char *backend; /* the arena's of the request */
    const char *start_after;
    struct backend_list_ask ask;
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
static void put_page(struct buf *out, const struct backend_page *page, const char *after)
{
    size_t put = 0;
    buf_puts(out, "{\"entries\":[");
    for (size_t i = 0; i < page->entry_count; i++) {
        if (strcmp(page->entries[i].name, after) <= 0)
            continue;
        buf_puts(out, put++ > 0 ? "," : "");
        put_entry(out, &page->entries[i]);
    }
    buf_puts(out, "],\"prefixes\":[");
    put = 0;
    for (size_t i = 0; i < page->prefix_count; i++) {
        if (strcmp(page->prefixes[i], after) <= 0)
            continue;
        put_text(out, put++ > 0 ? "," : "", page->prefixes[i]);
    }
    put_text(out, "],\"next\":", page->token != NULL ? last_of(page) : "");
    buf_putc(out, '}');
}

/* --- the question ----------------------------------------------------------------------------- */

static int ask_once(const struct cold_list *l, const struct backend_list_ask *list,
                    struct backend_page *page, struct error *err)
{
    struct backend_spec spec;
    struct exchange_reply reply;
    const struct backend_ask ask = {.verb = BACKEND_LIST, .name = "", .list = list};
    int code = backend_parse(l->backend, page->arena, &spec, err);
    if (code != 0)
        return code;
    code = exchange_send(&l->target->cold->env, l->backend, &ask, NULL, &reply, err);
    if (code == 0)
        code = backend_ops_of(spec.provider)
                   ->page(&spec, buf_str(&reply.body), reply.body.len, page, err);
    else if (code == E_OBJECT_NOT_FOUND) /* who asks for names does not ask for this one */
        error_recode(err, code = E_BACKEND, "list");
    buf_done(&reply.body);
    return code;
}

/* Until there is something new, or no more. */
static int ask_page(const struct cold_list *l, struct backend_page *page, struct error *err)
{
    struct backend_list_ask list = l->ask;
    for (int asks = 0; asks < ASKS_MAX; asks++) {
        page->token = NULL;
        int code = ask_once(l, &list, page, err);
        if (code != 0 || page->token == NULL || strcmp(last_of(page), l->start_after) > 0)
            return code;
        list.token = page->token;
    }
    return error_set(err, E_BACKEND, "the backend's list has %d pages in a row without a name",
                     ASKS_MAX);
}

int cold_list_names(struct target *t, const char *backend, const char *prefix, const char *after,
                    struct backend_page *page, struct error *err)
{
    const struct cold_list l = {
        .target = t,
        .backend = backend,
        .start_after = after,
        .ask = {.prefix = prefix, .delimiter = "", .start_after = after, .limit = LIMIT_DEFAULT}};
    return ask_page(&l, page, err);
}

static void list_run(void *arg)
{
    struct cold_list *l = arg;
    _cleanup_(arena_freep)
    struct arena *a = arena_new(64 << 10);
    struct backend_page page = {.arena = a};
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(l->req));
    if (ask_page(l, &page, &err) == 0) {
        _cleanup_(buf_done)
        struct buf text = BUF_INIT;
        put_page(&text, &page, l->start_after);
        http_reply_data(l->req, 200, "application/json", text.data, text.len);
    } else {
        log_warn("backend not listed", lerr(&err));
        http_reply_error(l->req, &err);
    }
    log_set_request(NULL);
}

/* --- the route -------------------------------------------------------------------------------- */

static const char *text_query(const struct http_request *req, const char *name)
{
    const char *text = http_query(req, name);
    return text != NULL ? text : "";
}

/* With a delimiter `from` may lie in a common prefix that has not been shown yet. */
static int parse_list(struct cold_list *l, uint64_t *bucket_id, struct error *err)
{
    uint64_t limit = LIMIT_DEFAULT;
    const char *text = http_query(l->req, "limit");
    int code = parse_u64(http_path_param(l->req, "bucket_id"), bucket_id, err);
    if (code == 0 && text != NULL)
        code = parse_u64(text, &limit, err);
    if (code == 0 && (limit < 1 || limit > LIST_PAGE_MAX))
        code = error_set(err, E_INVALID, "parameter 'limit' is not within 1 and %d", LIST_PAGE_MAX);
    l->start_after = text_query(l->req, "start_after");
    l->ask = (struct backend_list_ask){
        .prefix = text_query(l->req, "prefix"),
        .delimiter = text_query(l->req, "delimiter"),
        .start_after = greater(l->start_after, text_query(l->req, "from")),
        .limit = limit + 1, /* one may be a common prefix that has been shown */
    };
    return code;
}

static int find_backend(struct cold_list *l, uint64_t bucket_id, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(l->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    if (b == NULL || b->props.backend == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "bucket %llu does not exist, or has no backend",
                         (unsigned long long)bucket_id);
    l->backend = arena_strdup(http_arena(l->req), b->props.backend);
    return 0;
}

static void list_start(void *arg)
{
    struct cold_list *l = arg;
    struct error err = ERROR_INIT;
    uint64_t bucket_id;
    if (parse_list(l, &bucket_id, &err) != 0 || find_backend(l, bucket_id, &err) != 0 ||
        pool_submit(l->target->cold->askers, list_run, l, &err) != 0)
        http_reply_error(l->req, &err);
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
     .begin = list_begin,
     .summary = "A page of the names that a bucket's backend has, in bytewise order.",
     .query = "prefix, delimiter, start_after, from, limit (1 to 10000, default 1000): as of the "
              "target's own list; dfcv=the sender's state version",
     .body = "",
     .reply =
         "`{\"entries\": [{\"name\", \"size\", \"version\": \"0.0.0\", \"etag\", "
         "\"modified_ms\", \"cached\": false}], \"prefixes\", \"next\"}`; pages may be shorter "
         "than `limit`: the last one has no `next`",
     .errors = "invalid_argument bucket_not_found not_supported backend_denied backend_error "
               "backend_unavailable backend_timeout"},
    {.name = NULL},
};
