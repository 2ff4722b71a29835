/* A request that another handler carries out (handler.h).  `recast` is set until the reply is made:
 * whoever makes it clears the field, and the first handler's replied() decides what is sent. */
#include "net/http/request.h"

#include "common/mem.h"

static struct request_header *read_line(struct arena *a, const char *line)
{
    struct request_header *h = arena_alloc(a, sizeof *h);
    size_t name = strcspn(line, ":");
    const char *value = line[name] == ':' ? line + name + 1 : line + name;
    *h = (struct request_header){.name = arena_strndup(a, line, name),
                                 .value = value + strspn(value, " ")};
    return h;
}

static void set_headers(struct http_request *req, const char *const *lines)
{
    req->headers = NULL;
    req->headers_end = &req->headers;
    for (; *lines != NULL; lines++) {
        struct request_header *h = read_line(req->arena, *lines);
        *req->headers_end = h;
        req->headers_end = &h->next;
    }
}

static void set_path(struct http_request *req, const struct http_parameter *path)
{
    size_t count = 0;
    for (; path->name != NULL && count < ROUTER_PARAMS_MAX; path++, count++) {
        req->match.params[count] =
            (struct router_param){.name = path->name, .name_len = strlen(path->name)};
        req->params[count] = path->value;
    }
    req->match.param_count = count;
}

void http_recast(struct http_request *req, const struct http_recast *as)
{
    set_headers(req, as->headers);
    set_path(req, as->path);
    req->query = "";
    req->queries = NULL;
    req->recast = as;
    req->recast_headers = req->reply.headers_end;
    as->begin(req);
}

void recast_replied(struct http_request *req, const struct error *failure)
{
    const struct http_recast *as = steal(req->recast);
    as->replied(req, as->ctx, failure);
}

int http_reply_status(const struct http_request *req)
{
    return req->reply.status;
}

void http_reply_take_headers(struct http_request *req,
                             void (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
    const struct request_header *h = *req->recast_headers;
    *req->recast_headers = NULL;
    req->reply.headers_end = req->recast_headers;
    for (; h != NULL; h = h->next)
        fn(ctx, h->name, h->value);
}

int64_t http_reply_length(const struct http_request *req)
{
    return req->reply.length;
}

void http_reply_as_it_is(struct http_request *req, int status)
{
    req->reply.status = status;
    request_publish(req);
}

void http_reply_drop(struct http_request *req)
{
    struct reply *r = &req->reply;
    if (r->kind == REPLY_STREAM && r->ops->free != NULL)
        r->ops->free(r->ctx);
    free(r->data);
    *req->recast_headers = NULL;
    *r = (struct reply){.fd = r->fd, /* a reader's thread may have them in hand until the end */
                        .reader = r->reader,
                        .headers = r->headers,
                        .headers_end = req->recast_headers};
    req->recast = NULL;
}
