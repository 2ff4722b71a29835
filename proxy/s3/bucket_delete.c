#include "proxy/s3/bucket_delete.h"

#include "common/clock.h"
#include "common/internal_name.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "proxy/list/list.h"
#include "proxy/primary/proxy.h"

enum { PAGES_MS = 30000 }; /* empty pages are followed, but not for ever */

/* Of the request's arena. */
struct deletion {
    struct http_request *req;
    struct proxy *proxy;
    const char *bucket;
    uint64_t bucket_id, until_ms;
    struct error err; /* why it is opened again */
    void (*done)(struct http_request *req, const struct error *err);
};

static struct command command_of(const struct deletion *d, enum command_kind kind)
{
    return (struct command){.kind = kind, .name = d->bucket, .bucket_id = d->bucket_id};
}

static void opened(void *arg, const struct error *err)
{
    struct deletion *d = arg;
    if (err != NULL && err->code != E_BUCKET_NOT_FOUND)
        log_error("bucket not opened", lstr("bucket", d->bucket), lerr(err));
    d->done(d->req, &d->err);
}

static void open_again(struct deletion *d, const struct error *why)
{
    const struct command cmd = command_of(d, CMD_BUCKET_OPEN);
    d->err = *why;
    proxy_commit(d->proxy, &cmd, opened, d);
}

static void destroyed(void *arg, const struct error *err)
{
    struct deletion *d = arg;
    if (err != NULL)
        open_again(d, err);
    else
        d->done(d->req, NULL);
}

static void destroy(struct deletion *d)
{
    const struct command cmd = command_of(d, CMD_BUCKET_DESTROY);
    proxy_commit_settled(d->proxy, &cmd, destroyed, d);
}

static void look_for_names(struct deletion *d, const char *token);

/* *next: of the request's arena; "": the bucket is empty. */
static int read_page(struct deletion *d, const struct buf *text, const char **next,
                     struct error *err)
{
    _cleanup_json_ json_t *page = NULL;
    json_t *entries = NULL;
    int code = json_parse(text->data, text->len, &page, err);
    if (code == 0)
        code = json_get_array(page, "", "entries", &entries, err);
    if (code == 0)
        code = json_need_str(page, "", "next", next, err);
    if (code != 0)
        return code;
    *next = arena_strdup(http_arena(d->req), *next);
    const char *name = json_string_value(json_object_get(json_array_get(entries, 0), "name"));
    if (name != NULL && name_is_internal(name))
        return error_set(err, E_BUCKET_NOT_EMPTY,
                         "bucket '%.80s' has objects whose names begin with '.dfc-'; list and "
                         "delete them with this prefix",
                         d->bucket);
    if (json_array_size(entries) > 0)
        return error_set(err, E_BUCKET_NOT_EMPTY, "bucket '%.80s' has objects", d->bucket);
    if (**next != '\0' && clock_ms() > d->until_ms)
        return error_set(err, E_OVERLOAD,
                         "so many names were deleted here that no page has one; try again");
    return 0;
}

static void listed(void *arg, const struct error *failure, const struct buf *page)
{
    struct deletion *d = arg;
    struct error err = ERROR_INIT;
    const char *next = "";
    if (failure != NULL)
        err = *failure;
    else
        (void)read_page(d, page, &next, &err);
    if (err.code != 0)
        open_again(d, &err);
    else if (*next != '\0')
        look_for_names(d, next);
    else
        destroy(d);
}

static void look_for_names(struct deletion *d, const char *token)
{
    struct list_request r = LIST_REQUEST_DEFAULT(d->bucket);
    r.token = token;
    r.limit = 1;
    r.internal = true;
    r.done = listed;
    r.arg = d;
    list_start(d->req, &r);
}

static void closed(void *arg, const struct error *err)
{
    struct deletion *d = arg;
    if (err != NULL)
        d->done(d->req, err);
    else
        look_for_names(d, NULL);
}

void bucket_delete(struct http_request *req, uint64_t bucket_id,
                   void (*done)(struct http_request *req, const struct error *err))
{
    struct deletion *d = arena_alloc(http_arena(req), sizeof *d);
    *d = (struct deletion){.req = req,
                           .proxy = http_user(req),
                           .bucket = http_path_param(req, "bucket"),
                           .bucket_id = bucket_id,
                           .until_ms = clock_ms() + PAGES_MS,
                           .done = done};
    const struct command cmd = command_of(d, CMD_BUCKET_CLOSE);
    proxy_commit(d->proxy, &cmd, closed, d);
}
