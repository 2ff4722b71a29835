/* The HTTP client of the daemons: libcurl's multi interface in one loop's thread, connections
 * reused, every call bounded in time.
 *
 * A call is started from any thread; everything it is given is copied, but for the pipes.
 * Its body and its reply are either buffers (small, bounded)
 * or bpipes (streams, with backpressure both ways):
 *
 *     struct http_call call = {.method = HTTP_GET, .url = url, .download = pipe, ...};
 *     http_call_start(client, &call, done, arg);     // spec is copied; done() in the loop's thread
 *
 * Workers that may block use http_call_wait().  Errors of the transport are E_NET or E_TIMEOUT with
 * the URL, E_ADDRESS where it may not be connected to; an HTTP status is not an error here, but
 * http_result_error() makes one out of the JSON error document of our own nodes.
 *
 * Calls between nodes are signed by themselves, where the client has an auth: a new one needs no
 * line for that.  One that goes to a public listener says so (to_public).
 *
 * A call ends early, and tells both pipes why, when the writer of its upload finishes with an
 * error, when the reader of its download cancels, when the server has answered with an error or is
 * gone, when no byte moves, or by http_call_cancel(). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/buf.h"
#include "common/error.h"
#include "io/bpipe.h"
#include "io/loop.h"
#include "net/http/http.h"

struct auth;
struct http_client;

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

int http_client_new(struct loop *loop, const struct http_client_config *config,
                    struct http_client **out, struct error *err);
/* From here on no call stands still for longer than this, whatever its own timeout: those of a node
 * that stops must not wait for one that does not answer. */
void http_client_hurry(struct http_client *c, uint64_t stall_timeout_ms);
/* Ends running calls with E_CANCELLED, and those that their done() starts; when it returns every
 * done() has returned.  A done() that always starts another call, whatever its result, would keep
 * this from returning. */
void http_client_free(struct http_client *c);

/* The reply's head, before any byte of its body. */
struct http_head {
    int status;
    int64_t content_length;                                                /* -1 unknown */
    const char *(*header)(const struct http_head *head, const char *name); /* or NULL */
    void (*each_header)(const struct http_head *head,
                        void (*fn)(void *ctx, const char *name, const char *value), void *ctx);
};

struct http_call {
    enum http_method method;
    const char *url;
    const char *const *headers; /* "Name: value", NULL-terminated; or NULL */
    const void *body;           /* buffer … */
    size_t body_len;
    struct bpipe *upload;      /* … or stream (a reference is taken) */
    int64_t upload_length;     /* -1: chunked.  A stream that ends before is E_LENGTH; what goes
                                 * beyond is not sent */
    struct bpipe *download;    /* stream for a 2xx reply's body (a reference is taken); another
                                 * status gives the reader http_result_error()'s error */
    size_t reply_max;          /* buffered reply's limit; 0: 1 MiB */
    uint64_t total_timeout_ms; /* 0: none (streams) */
    uint64_t stall_timeout_ms; /* 0: the client's.  HTTP_NO_STALL_TIMEOUT where the peer may well
                                 * let us wait (it applies backpressure): one that is gone is then
                                 * found by TCP's keepalive */
    bool to_public;            /* to a public listener, where nobody asks for a signature */
    bool any_node;             /* any node may answer, whatever the cluster map says: the call looks
                                 * for the primary or for the map */
    bool once;               /* what it does must not be done twice: it goes out on a connection of
                                 * its own.  (A kept one may die under a call that was carried out,
                                 * and then the call is repeated, as HTTP allows, where its body can
                                 * be) */
    bool any_status_streams; /* a proxy: the download pipe gets the body whatever the status */
    void (*on_head)(void *arg, const struct http_head *head); /* in the loop's thread, or NULL */
    const char *request_id;                                   /* sent as X-Request-Id, or NULL */
};

struct http_result {
    int code;         /* 0, or a transport error */
    int status;       /* HTTP status, when code == 0 */
    struct buf body;  /* buffered reply */
    struct error err; /* transport error's words */
    bool not_sent;    /* with a transport error: the server cannot have seen any of it */
    char etag[80];    /* selected headers */
};

void http_result_done(struct http_result *r);
/* 0 for a 2xx; else the error: the transport's, or the one in the reply's JSON error document
 * (code by name, message with "node: "), or E_NET with the status. */
int http_result_error(const struct http_result *r, const char *url, struct error *err);

/* `done` owns nothing: it may steal(r->body.data) through buf_steal.  The pipe ends are finished or
 * cancelled before done() runs.  Returns the call's number, for http_call_cancel(). */
uint64_t http_call_start(struct http_client *c, const struct http_call *call,
                         void (*done)(void *arg, struct http_result *r), void *arg);
/* The call ends soon with E_CANCELLED, unless it has ended.  Any thread. */
void http_call_cancel(struct http_client *c, uint64_t number);
/* Blocks the calling thread (never the loop's).  Returns http_result_error()'s code. */
int http_call_wait(struct http_client *c, const struct http_call *call, struct http_result *r,
                   struct error *err);
/* JSON in, JSON out: POST/PUT of `in` (or no body), the reply parsed into *out (may be NULL). */
int http_json_wait(struct http_client *c, enum http_method method, const char *url,
                   const json_t *in, uint64_t timeout_ms, json_t **out, struct error *err);
