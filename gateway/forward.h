/* A native call to the target of an object that carries an S3 request out, with body and reply as
 * streams.  The target itself needs none of it (local.h).
 *
 *   client ── body ──▶ [upload pipe] ──▶ target
 *                │
 *                └ decoded and summed (body.h).  The last byte waits until the whole body has
 *                  proved right, so that the target makes nothing visible that is not.
 *
 *   client ◀── reply ── HTTP thread ◀── target          a read over plain TCP (net/direct)
 *   client ◀── reply ── [download pipe] ◀── target      … and over TLS
 *
 * Backpressure both ways; memory is two pipes.  A read follows the redirects of targets.  A call
 * with a body does not: its error is one that clients repeat.  A target that dies in the middle of
 * a reply cuts the client's connection. */
#pragma once

#include "gateway/target_call.h"

struct body;
struct bpipe;
struct direct;

struct forward_reply {
    struct error err; /* code 0: it has succeeded; E_NOT_MODIFIED comes with headers */
    int status;
    int64_t length;                     /* of the body; -1: unknown */
    struct target_call_header *headers; /* or NULL */
    struct direct *direct;              /* has the bytes of a read … */
    struct bpipe *pipe;                 /* … or this; none: see forward_reply_bytes() */
    struct buf text;                    /* of another call than a read: the body of a success */
    const struct body *body;            /* the plan's; right where `err` is none */
};

struct forward_plan {
    enum http_method method;    /* of the native call */
    const char *const *headers; /* "Name: value", NULL-terminated; of the request's arena */
    const char *range;          /* value of the Range header among them; or NULL */
    struct body *body;          /* taken over; NULL: the request's body is not read */
    /* Replies; once.  In an HTTP thread or the client's loop. */
    void (*reply)(struct http_request *req, const struct gateway_call *call,
                  const struct forward_reply *r);
};

/* Of all of the object, also where the reply is a range of it; -1: unknown. */
int64_t forward_reply_total(const struct forward_reply *r);
/* In reply(): the bytes of the object follow the headers. */
void forward_reply_bytes(struct http_request *req, int status, const struct forward_reply *r);

/* From a handler's begin.  `plan` is copied. */
void forward_start(struct http_request *req, const struct gateway_call *call,
                   const struct forward_plan *plan);
/* The same at this URL of a target; in any thread where the request has no body. */
void forward_to(struct http_request *req, const struct gateway_call *call,
                const struct forward_plan *plan, const char *url);
