/* What handlers ask of a request (handler.h). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>

#include "common/clock.h"
#include "net/http/request.h"
#include "net/http/server_state.h"

void *http_user(const struct http_request *req)
{
    return req->server->user;
}

enum http_method http_method(const struct http_request *req)
{
    return req->recast != NULL ? req->recast->method : req->method;
}

enum http_net http_listener(const struct http_request *req)
{
    return req->server->net;
}

const struct http_route *http_route(const struct http_request *req)
{
    return req->match.route;
}

void http_set_caller(struct http_request *req, void *caller)
{
    req->caller = caller;
}

void *http_caller(const struct http_request *req)
{
    return req->caller;
}

void http_set_actor(struct http_request *req, const char *id, const char *name)
{
    req->actor = (struct http_actor){.id = arena_strdup(req->arena, id),
                                     .name = arena_strdup(req->arena, name)};
}

const struct http_actor *http_actor(const struct http_request *req)
{
    return &req->actor;
}

void http_set_subject(struct http_request *req, const struct http_subject *subject)
{
    struct http_subject *copy = arena_alloc(req->arena, sizeof *copy);
    *copy = *subject;
    req->subject = copy;
}

const struct http_subject *http_subject(const struct http_request *req)
{
    return req->subject;
}

void http_outcome(const struct http_request *req, struct http_outcome *out)
{
    *out = (struct http_outcome){.status = (unsigned)server_status(req),
                                 .code = req->reply.code,
                                 .let_in = req->let_in,
                                 .bytes_in = req->body.received,
                                 .bytes_out = req->sent_bytes,
                                 .ms = (clock_us() - req->began_us) / 1000};
}

uint64_t http_bytes(const struct http_request *req)
{
    return req->body.received + req->sent_bytes;
}

const char *http_path(const struct http_request *req)
{
    return req->path;
}

const char *http_raw_query(const struct http_request *req)
{
    return req->query;
}

const char *http_path_param(const struct http_request *req, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < req->match.param_count; i++) {
        const struct router_param *p = &req->match.params[i];
        if (p->name_len == len && memcmp(p->name, name, len) == 0)
            return req->params[i];
    }
    return NULL;
}

const char *http_object(const struct http_request *req)
{
    const struct http_route *route = http_route(req);
    return route != NULL && route->object != NULL ? route->object : http_path_param(req, "object");
}

const char *http_query(const struct http_request *req, const char *name)
{
    for (const struct request_header *q = req->queries; q != NULL; q = q->next) {
        if (strcmp(q->name, name) == 0)
            return q->value;
    }
    return NULL;
}

const char *http_header(const struct http_request *req, const char *name)
{
    for (const struct request_header *h = req->headers; h != NULL; h = h->next) {
        if (strcasecmp(h->name, name) == 0)
            return h->value;
    }
    return NULL;
}

const char *http_header_list(struct http_request *req, const char *name)
{
    const char *list = NULL;
    for (const struct request_header *h = req->headers; h != NULL; h = h->next) {
        if (strcasecmp(h->name, name) == 0)
            list = list == NULL ? h->value : arena_printf(req->arena, "%s, %s", list, h->value);
    }
    return list;
}

void http_each_header(struct http_request *req,
                      void (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
    for (const struct request_header *h = req->headers; h != NULL; h = h->next)
        fn(ctx, h->name, h->value);
}

int64_t http_content_length(const struct http_request *req)
{
    return req->recast != NULL ? req->recast->content_length : req->content_length;
}

bool http_is_foreign(const struct http_request *req)
{
    return req->foreign;
}

bool http_body_comes_once(const struct http_request *req)
{
    return http_content_length(req) < 0 && !req->expects_continue;
}

const char *http_request_id(const struct http_request *req)
{
    return req->id;
}

struct arena *http_arena(struct http_request *req)
{
    return req->arena;
}

const char *http_peer(struct http_request *req)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (req->peer->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)req->peer;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        return arena_printf(req->arena, "%s:%u", host, ntohs(in->sin_port));
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)req->peer;
    if (req->peer->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
    return arena_printf(req->arena, "[%s]:%u", host, ntohs(in6->sin6_port));
}
