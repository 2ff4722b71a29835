/* A gathering lives in the list loop's thread: it asks every target, merges what comes, and replies
 * when all have answered, or when the first has failed.  It ends with the last call. */
#include "proxy/http/upload_list.h"

#include <string.h>

#include "cluster/placement/upload_node.h"
#include "common/mem.h"
#include "common/parse.h"
#include "proxy/list/list.h"
#include "proxy/http/upload_merge.h"
#include "proxy/primary/proxy.h"

enum {
    ROW_TEXT_MAX =
        7 << 10, /* bytes of an upload as JSON: a name, each byte escaped, and the rest */
    PAGE_TEXT_MAX = 4 << 10, /* bytes of a page without its rows */
};

struct gathering;

struct asked {
    struct gathering *gathering;
    char *node; /* id */
    char *url;
};

struct gathering {
    struct proxy *proxy;
    struct http_request *req;           /* NULL once it has been replied to */
    struct upload_list_request request; /* its texts are not kept */
    struct upload_merge *merge;
    size_t pending; /* calls under way */
    size_t count;
    struct asked asked[];
};

static void gathering_free(struct gathering *g)
{
    atomic_fetch_sub(&g->proxy->lists, 1);
    for (size_t i = 0; i < g->count; i++) {
        free(g->asked[i].node);
        free(g->asked[i].url);
    }
    upload_merge_free(g->merge);
    free(g);
}

static void fail(struct http_request *req, const struct upload_list_request *r,
                 const struct error *err)
{
    if (r->done != NULL)
        r->done(r->arg, err, NULL);
    else
        proxy_reply_error(req, err);
}

/* --- asking ----------------------------------------------------------------------------------- */

static void explain(const struct asked *a, struct error *err)
{
    if (err->code == E_CANCELLED)
        error_set(err, E_NOT_READY, "this proxy is stopping");
    else if (err->code == E_NET || err->code == E_TIMEOUT)
        error_recode(err, E_NODE_UNREACHABLE, "target '%s' cannot be asked for its uploads",
                     a->node);
    else
        error_wrap(err, "target '%s'", a->node);
}

static void reply(struct gathering *g)
{
    _cleanup_(buf_done)
    struct buf page = BUF_INIT;
    struct http_request *req = steal(g->req);
    upload_merge_page(g->merge, &page);
    if (g->request.done != NULL)
        g->request.done(g->request.arg, NULL, &page);
    else
        http_reply_data(req, 200, "application/json", page.data, page.len);
}

static void answered(void *arg, struct http_result *r)
{
    struct asked *a = arg;
    struct gathering *g = a->gathering;
    struct error err = ERROR_INIT;
    g->pending--;
    if (g->req != NULL) {
        int code = http_result_error(r, a->url, &err);
        if (code == 0)
            code = upload_merge_feed(g->merge, r->body.data, r->body.len, &err);
        if (code != 0) {
            explain(a, &err);
            fail(steal(g->req), &g->request, &err);
        } else if (g->pending == 0)
            reply(g);
    }
    if (g->pending == 0)
        gathering_free(g);
}

/* In the list loop. */
static void ask_all(void *arg)
{
    struct gathering *g = arg;
    g->pending = g->count;
    for (size_t i = 0, count = g->count; i < count; i++) {
        const struct http_call call = {
            .method = HTTP_GET,
            .url = g->asked[i].url,
            .node = g->asked[i].node,
            .reply_max = PAGE_TEXT_MAX + g->request.limit * ROW_TEXT_MAX,
            .total_timeout_ms = g->proxy->params.call_timeout,
            .request_id = g->req != NULL ? http_request_id(g->req) : NULL,
        };
        http_call_start(g->proxy->list_client, &call, answered, &g->asked[i]);
    }
}

/* --- the start -------------------------------------------------------------------------------- */

static int check_request(const struct upload_list_request *r, struct error *err)
{
    struct upload_id id;
    int code;
    if ((code = bucket_name_check(r->bucket, err)) != 0 ||
        (code = list_check_text(r->prefix, "prefix", err)) != 0 ||
        (code = list_check_text(r->after, "after", err)) != 0)
        return code;
    if (r->after_upload[0] != '\0' && upload_id_parse(r->after_upload, &id, err) != 0)
        return error_wrap(err, "parameter 'after_upload'");
    if (r->after_upload[0] != '\0' && r->after[0] == '\0')
        return error_set(err, E_INVALID,
                         "parameter 'after_upload' needs 'after', the object of that upload");
    if (r->limit < 1 || r->limit > UPLOAD_LIST_MAX)
        return error_set(err, E_INVALID, "parameter 'limit' must be 1 to %d", UPLOAD_LIST_MAX);
    return 0;
}

/* A target in maintenance that was stopped needs no answer: its uploads do not come back without
 * it. */
static bool is_asked(const struct node *n)
{
    return n->role == NODE_TARGET && upload_node_answers(n);
}

static int check_targets(const struct smap *m, size_t *count, struct error *err)
{
    *count = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct node *n = &m->nodes[i];
        if (n->role == NODE_TARGET && n->state == NODE_UNREACHABLE)
            return error_set(err, E_NODE_UNREACHABLE,
                             "target '%s' is unreachable, so that the list would not be complete",
                             n->id);
        *count += is_asked(n);
    }
    if (*count == 0)
        return error_set(err, E_NO_TARGETS, "the cluster has no target that could be asked");
    return 0;
}

static void put_parameter(struct buf *url, const char *name, const char *value)
{
    if (value[0] == '\0')
        return;
    buf_printf(url, "&%s=", name);
    buf_put_url_escaped(url, value, strlen(value), "/");
}

static char *url_of(const struct node *n, const struct bucket *b,
                    const struct upload_list_request *r)
{
    struct buf url = BUF_INIT;
    buf_printf(&url, "%s/v1/uploads/%llu?limit=%llu", n->data_url, (unsigned long long)b->id,
               (unsigned long long)r->limit);
    put_parameter(&url, "prefix", r->prefix);
    put_parameter(&url, "after", r->after);
    put_parameter(&url, "after_upload", r->after_upload);
    return buf_steal(&url);
}

static struct gathering *gathering_new(struct http_request *req, const struct cluster_state *s,
                                       const struct upload_list_request *r, const struct bucket *b,
                                       size_t count)
{
    struct gathering *g = xcalloc(1, sizeof *g + count * sizeof g->asked[0]);
    *g = (struct gathering){.proxy = http_user(req), .req = req, .request = *r};
    g->merge = upload_merge_new(r->limit);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (is_asked(n))
            g->asked[g->count++] =
                (struct asked){.gathering = g, .node = xstrdup(n->id), .url = url_of(n, b, r)};
    }
    return g;
}

static int gathering_make(struct http_request *req, const struct upload_list_request *r,
                          struct gathering **out, struct error *err)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    size_t count;
    int code = check_request(r, err);
    if (code != 0)
        return code;
    const struct bucket *b = bmd_bucket(&s->bmd, r->bucket);
    if (b == NULL)
        return proxy_no_bucket(p, r->bucket, err);
    if ((code = check_targets(&s->smap, &count, err)) != 0)
        return code;
    if (atomic_fetch_add(&p->lists, 1) >= param_live(p->params.lists_max)) {
        atomic_fetch_sub(&p->lists, 1);
        return error_set(err, E_OVERLOAD, "%llu lists are being made, this proxy's limit",
                         (unsigned long long)param_live(p->params.lists_max));
    }
    *out = gathering_new(req, s, r, b, count);
    return 0;
}

void upload_list_start(struct http_request *req, const struct upload_list_request *r)
{
    struct proxy *p = http_user(req);
    struct gathering *g = NULL;
    struct error err = ERROR_INIT;
    if (gathering_make(req, r, &g, &err) != 0)
        fail(req, r, &err);
    else
        loop_post(p->list_loop, ask_all, g);
}

/* --- the route -------------------------------------------------------------------------------- */

static const char *query_or_empty(const struct http_request *req, const char *name)
{
    const char *value = http_query(req, name);
    return value != NULL ? value : "";
}

static void upload_list_begin(struct http_request *req)
{
    struct error err = ERROR_INIT;
    if (proxy_enter_objects(req) == NULL)
        return;
    struct upload_list_request r = {
        .bucket = http_path_param(req, "bucket"),
        .prefix = query_or_empty(req, "prefix"),
        .after = query_or_empty(req, "after"),
        .after_upload = query_or_empty(req, "after_upload"),
        .limit = UPLOAD_LIST_MAX,
    };
    const char *limit = http_query(req, "limit");
    if (limit != NULL && parse_u64(limit, &r.limit, &err) != 0) {
        error_wrap(&err, "parameter 'limit'");
        http_reply_error(req, &err);
    } else
        upload_list_start(req, &r);
}

const struct http_route upload_list_routes[] = {
    {.name = "upload_list",
     .method = HTTP_GET,
     .pattern = "/v1/uploads/{bucket}",
     .nets = NET_PUBLIC,
     .right = RIGHT_LIST,
     .begin = upload_list_begin,
     .summary = "A page of a bucket's open uploads, by object, then by time.",
     .query = HTTP_PARAMETERS({"prefix", "text"}, {"after", "object: only uploads behind it"},
                              {"after_upload", "id: with `after`, only uploads behind this one"},
                              {"limit", "1 to 1000 (default 1000)"}),
     .body = "",
     .reply = "`{\"uploads\": [{\"object\", \"upload\": id, \"time\": ms, \"sums\" if asked}], "
              "\"more\": boolean}`",
     .errors = "invalid_argument invalid_name bucket_not_found no_targets node_unreachable "
               "mountpath_disabled overloaded"},
    {.name = NULL},
};
