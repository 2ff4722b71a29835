/* What a call of the client (client.h) brings: the head of the reply, and in the end its result. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

/* The reply's head, before any byte of its body. */
struct http_head {
    int status;
    int64_t content_length;                                                /* -1 unknown */
    const char *(*header)(const struct http_head *head, const char *name); /* or NULL */
    void (*each_header)(const struct http_head *head,
                        void (*fn)(void *ctx, const char *name, const char *value), void *ctx);
};

struct http_result {
    int code;         /* 0, or a transport error */
    int status;       /* HTTP status, when code == 0 */
    struct buf body;  /* buffered reply */
    struct error err; /* transport error's words */
    bool not_sent;    /* with a transport error: the server cannot have seen any of it */
    bool repeated;    /* a kept connection died under it, and it was sent again: the server may have
                       * carried it out before */
    char etag[80];    /* selected headers */
    char peer[64];    /* "10.0.0.1:80", "[::1]:80": where it went; "" where it is not known */
};

void http_result_done(struct http_result *r);
/* 0 for a 2xx; else the error: the transport's, or the one in the reply's JSON error document
 * (code by name, message with "node: "), or E_NET with the status. */
int http_result_error(const struct http_result *r, const char *url, struct error *err);
