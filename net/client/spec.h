/* What a client (client.h) and each of its calls are given. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "io/bpipe.h"
#include "net/http/http.h"

struct auth;
struct http_head;

struct http_client_config {
    uint64_t connect_timeout_ms;
    uint64_t stall_timeout_ms; /* no byte moved for so long: E_TIMEOUT (not while a pipe waits) */
    uint64_t silence_ms; /* for which another node's machine may acknowledge nothing (silence.h); 0:
                          * TCP's own times */
    unsigned connections_per_host_max; /* 0: no limit; streams that wait for each other need that */
    /* For https: PEM files, whose names stay the caller's.  NULL: the system's authorities; no
     * certificate of our own. */
    const char *ca_file;
    const char *cert_file;
    const char *key_file;
    struct auth *auth; /* signs every call but those `to_public` (auth.h); NULL: none */
    /* May this address, which the URL's host was resolved to, be connected to? False: E_ADDRESS.
     * In the loop's thread; it does not wait.  NULL: any.  Kept connections are reused by the URL's
     * host, so that calls to hosts that clients name have a client of their own. */
    bool (*may_connect)(void *ctx, const struct sockaddr *address);
    void *may_connect_ctx;
};

#define HTTP_NO_STALL_TIMEOUT UINT64_MAX
/* For a call that looks for the primary, or for the map. */
#define HTTP_ANY_NODE ""

struct http_call {
    enum http_method method;
    const char *url;
    const char *const *headers; /* "Name: value", NULL-terminated; or NULL */
    const void *body;           /* buffer … */
    size_t body_len;
    bool body_stays;           /* not copied: it stays the caller's, unchanged until done() */
    struct bpipe *upload;      /* … or stream (a reference is taken) */
    int64_t upload_length;     /* -1: chunked.  A stream that ends before is E_LENGTH; what goes
                                 * beyond is not sent */
    struct bpipe *download;    /* stream for a 2xx reply's body (a reference is taken); another
                                 * status gives the reader http_result_error()'s error */
    size_t reply_max;          /* buffered reply's limit; 0: 1 MiB.  Errors have 64 KiB at least */
    uint64_t total_timeout_ms; /* 0: none (streams) */
    uint64_t stall_timeout_ms; /* 0: the client's.  HTTP_NO_STALL_TIMEOUT where the peer may well
                                 * let us wait (it applies backpressure): one that is gone is then
                                 * found by TCP's keepalive */
    bool to_public;            /* to a public listener, where nobody asks for a signature */
    const char *node;        /* id of the node that must answer, or HTTP_ANY_NODE; a call that must
                                * be signed fails without it */
    bool once;               /* what it does must not be done twice: it goes out on a connection of
                                 * its own.  (A kept one may die under a call that was carried out,
                                 * and then the call is repeated, as HTTP allows, where its body can
                                 * be) */
    bool any_status_streams; /* a proxy: the download pipe gets the body whatever the status */
    void (*on_head)(void *arg, const struct http_head *head); /* in the loop's thread, or NULL */
    const char *request_id;                                   /* sent as X-Request-Id, or NULL */
};
