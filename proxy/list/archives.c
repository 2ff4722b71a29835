#include "proxy/list/archives.h"

#include <string.h>

#include "access/guard.h"
#include "common/arena.h"
#include "common/mem.h"
#include "gateway/target_call.h"
#include "net/client/client.h"
#include "proxy/list/list.h"
#include "proxy/list/expand.h"
#include "proxy/primary/proxy.h"

enum { MEMBERS_BYTES = 8 << 20 }; /* of a page of members at most */

/* Of one thread at a time: the next step begins when the one before has ended. */
struct expansion {
    struct proxy *proxy;
    struct http_request *req;
    struct list_request wanted; /* its texts are of this arena: */
    struct arena *arena;
    struct list_expand *page;
    char *archive; /* whose members are asked for, */
    char *url;     /* here, */
    unsigned hops; /* after so many redirects; */
    const struct target_call_header *found;
    struct arena *call_arena; /* of these headers */
};

static void expansion_free(struct expansion *x)
{
    list_expand_free(x->page);
    free(x->archive);
    free(x->url);
    arena_free(x->call_arena);
    arena_free(x->arena);
    free(x);
}

static void fail_early(struct http_request *req, const struct list_request *r,
                       const struct error *err)
{
    if (r->done != NULL)
        r->done(r->arg, err, NULL);
    else
        proxy_reply_error(req, err);
}

static void fail(struct expansion *x, const struct error *err)
{
    fail_early(x->req, &x->wanted, err);
    expansion_free(x);
}

static void succeed(struct expansion *x)
{
    _cleanup_buf_ struct buf page = BUF_INIT;
    list_expand_put(x->page, &page);
    if (x->wanted.done != NULL)
        x->wanted.done(x->wanted.arg, NULL, &page);
    else
        http_reply_data(x->req, 200, "application/json", page.data, page.len);
    expansion_free(x);
}

static void step(struct expansion *x);

/* --- members ---------------------------------------------------------------------------------- */

static void call_target(struct expansion *x);

static void members_head(void *arg, const struct http_head *head)
{
    struct expansion *x = arg;
    x->found = target_call_headers(x->call_arena, head);
}

static bool has_none(int code)
{
    return code == E_NOT_ARCHIVE || code == E_OBJECT_NOT_FOUND;
}

static void members_came(void *arg, struct http_result *result)
{
    struct expansion *x = arg;
    struct error err = ERROR_INIT;
    const char *next = target_call_next(result, x->found, x->hops);
    if (next != NULL) {
        free(x->url);
        x->url = xstrdup(next); /* before its headers are freed */
        x->hops++;
        call_target(x);
        return;
    }
    int code = target_call_error(result, x->url, &err);
    if (code == 0)
        code = list_expand_members(x->page, result->body.data, result->body.len, &err);
    else if (has_none(code)) {
        list_expand_no_members(x->page);
        code = 0;
    }
    if (code != 0) {
        error_wrap(&err, "archive '%s/%s'", x->wanted.bucket, x->archive);
        fail(x, &err);
        return;
    }
    step(x);
}

static void call_target(struct expansion *x)
{
    const struct http_call call = {.method = HTTP_GET,
                                   .url = x->url,
                                   .to_public = true,
                                   .reply_max = MEMBERS_BYTES,
                                   .on_head = members_head,
                                   .request_id = http_request_id(x->req)};
    arena_free(x->call_arena);
    x->call_arena = arena_new(1024);
    x->found = NULL;
    http_call_start(x->proxy->data_client, &call, members_came, x);
}

static void ask_members(struct expansion *x, const struct list_expand_question *q)
{
    struct error err = ERROR_INIT;
    _cleanup_buf_ struct buf query = BUF_INIT;
    _cleanup_buf_ struct buf url = BUF_INIT;
    buf_printf(&query, "members=list&limit=%zu&after=", q->limit);
    buf_put_url_escaped(&query, q->after, strlen(q->after), "");
    const struct target_call call = {.method = HTTP_GET,
                                     .bucket = x->wanted.bucket,
                                     .key = q->archive,
                                     .query = buf_str(&query),
                                     .member = ""};
    if (target_call_url(x->req, x->proxy->gateway, &call, &url, &err) != 0) {
        fail(x, &err);
        return;
    }
    free(x->archive);
    x->archive = xstrdup(q->archive);
    free(x->url);
    x->url = buf_steal(&url);
    x->hops = 0;
    call_target(x);
}

/* --- pages ------------------------------------------------------------------------------------ */

static void page_came(void *arg, const struct error *failure, const struct buf *page)
{
    struct expansion *x = arg;
    struct error err = failure != NULL ? *failure : ERROR_INIT;
    if (failure != NULL || list_expand_page(x->page, page->data, page->len, &err) != 0)
        fail(x, &err);
    else
        step(x);
}

static void ask_page(struct expansion *x, const struct list_expand_question *q)
{
    struct list_request r = x->wanted;
    r.token = q->token;
    r.limit = q->limit;
    r.done = page_came;
    r.arg = x;
    list_start(x->req, &r);
}

static void step(struct expansion *x)
{
    struct list_expand_question q;
    switch (list_expand_next(x->page, &q)) {
    case EXPAND_PAGE:
        ask_page(x, &q);
        break;
    case EXPAND_MEMBERS:
        ask_members(x, &q);
        break;
    case EXPAND_DONE:
        succeed(x);
        break;
    }
}

/* --- the start -------------------------------------------------------------------------------- */

static int check(struct http_request *req, const struct list_request *r, struct error *err)
{
    int code = list_check(r, err);
    return code != 0 ? code : guard_ask(req, RIGHT_READ, r->bucket, r->prefix, err);
}

static void keep_texts(struct expansion *x)
{
    struct list_request *r = &x->wanted;
    r->bucket = arena_strdup(x->arena, r->bucket);
    r->prefix = arena_strdup(x->arena, r->prefix);
    r->delimiter = arena_strdup(x->arena, r->delimiter);
    r->start_after = arena_strdup(x->arena, r->start_after);
}

void list_archives_start(struct http_request *req, const struct list_request *r)
{
    struct error err = ERROR_INIT;
    if (!r->members) {
        list_start(req, r);
        return;
    }
    if (check(req, r, &err) != 0) {
        fail_early(req, r, &err);
        return;
    }
    struct expansion *x = xcalloc(1, sizeof *x);
    *x = (struct expansion){.proxy = http_user(req),
                            .req = req,
                            .wanted = *r,
                            .arena = arena_new(1024),
                            .page = list_expand_new(r->token, r->limit)};
    keep_texts(x);
    step(x);
}
