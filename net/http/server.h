/* The HTTP server's seam: requests in, replies out.  Behind it stand the connections: our own on
 * epoll, or libmicrohttpd's; before it the route tables of the daemons (handler.h).  No file
 * outside net/ knows how bytes come and go. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "net/http/body_pace.h"
#include "net/http/handler.h"

struct auth;
struct http_server;
struct tls;
struct visitor_rules;

enum { HTTP_COLLECT_MEMORY = 256 * 1024 * 1024 };

/* What drives the connections. */
enum http_layer {
    HTTP_LAYER_EPOLL,      /* our own: sendfile, large reads, every error as documented */
    HTTP_LAYER_MICROHTTPD, /* libmicrohttpd, for comparison and as a second opinion in tests */
};

struct http_server_config {
    const char *node;    /* this node's name, in error documents */
    const char *address; /* "127.0.0.1" or "::" */
    uint16_t port;       /* 0: any free one */
    enum http_net net;
    unsigned threads;
    unsigned connections_max;
    size_t connection_memory;   /* bytes for a request's headers, twice (libmicrohttpd: its pool) */
    unsigned idle_timeout_s;    /* a connection on which nothing moves for so long is closed */
    uint64_t head_timeout_ms;   /* the first head of a connection takes no longer; 0: idle_timeout_s
                                 * (libmicrohttpd: always) */
    struct body_rate body_rate; /* of requests; 0: none is too slow */
    /* Of all bodies together that http_collect_body() gathers; 0: HTTP_COLLECT_MEMORY. */
    size_t collect_memory;
    enum http_layer layer;
    const struct http_route *const *routes; /* NULL-terminated list of tables */
    const struct visitor_rules
        *visitors;     /* of a public one (visitor.h); NULL: not asked.  Borrowed */
    struct auth *auth; /* NULL: nobody is asked for proof, as on the public listener */
    const struct http_guard
        *guard;              /* of a public one; NULL: everybody may do everything.  Borrowed */
    bool admin_is_elsewhere; /* of a public one whose guard asks for rights: another listener has
                              * operators' calls */
    const struct http_witness *witness; /* told of the end of each request; or NULL.  Borrowed */
    const struct http_error_form *error_form; /* of its requests; NULL: JSON.  Borrowed */
    const struct http_dialect *dialect; /* that its clients may speak, too; or NULL.  Borrowed */
    struct tls *tls; /* TLS is spoken, with this certificate; NULL: plain HTTP.  Borrowed.
                        * (libmicrohttpd: always plain) */
    uint64_t tls_handshake_timeout_ms; /* of a client in the handshake; 0: idle_timeout_s */
    unsigned tls_handshakes_max;       /* under way at one time; others wait */
    void *user;                        /* http_user(req) */
};

int http_server_new(const struct http_server_config *config, struct http_server **out,
                    struct error *err);
/* How many are under way now.  Any thread. */
size_t http_server_requests(struct http_server *s);
uint16_t http_server_port(const struct http_server *s);
/* The server will end soon: each reply from now on is the last one of its connection, and says so,
 * that no client finds a kept connection closed.  New connections are served still.  Any thread. */
void http_server_leave(struct http_server *s);
/* Stops listening, answers what is under way with 503 where nothing was sent yet, waits for
 * parked requests to be replied to, frees. */
void http_server_free(struct http_server *s);
