/* A native call about an upload in parts (docs/design/uploads.md) that carries an S3 request out,
 * with small bodies.  The bytes of a part go by forward.h and copy.h, to upload_call_url().
 *
 * An upload is at the target where it began, which its id names; a new one begins at the target
 * that acts for the object. */
#pragma once

#include "common/buf.h"
#include "common/error.h"
#include "gateway/gateway.h"

struct upload_call {
    enum http_method method;
    const char *upload;         /* its id; NULL: a new one */
    const char *query;          /* further parameters, escaped: "part=3"; or NULL */
    const char *const *headers; /* "Name: value", NULL-terminated; or NULL */
    const char *body;           /* JSON; or NULL */
    const char *old_body; /* for a target of an earlier build, which refuses `body`; or NULL */
    bool is_slow; /* no byte may come for long; it begins in the loop's thread (upload_watch.h) */
    /* Once, in the loop of the client.  `text`: the reply's body. */
    void (*done)(void *arg, const struct error *err, const struct buf *text);
    void *arg;
};

/* 0 where the upload may be: its target is in the cluster.  E_NOT_FOUND, E_BUCKET_NOT_FOUND,
 * E_NODE_UNREACHABLE. */
int upload_call_check(const struct gateway_call *call, const char *upload, struct error *err);
/* Appends the URL, with the proof of the user's right.  E_NOT_FOUND: no upload has the id.
 * E_BUCKET_NOT_FOUND, E_NO_TARGETS, E_NODE_UNREACHABLE. */
int upload_call_url(struct http_request *req, const struct gateway_call *call,
                    const struct upload_call *spec, struct buf *url, struct error *err);
/* Takes one of s3_forwards_max until done().  The request must not have ended when it begins; what
 * it is given is copied.  An error: done() is not called. */
int upload_call_start(struct http_request *req, const struct gateway_call *call,
                      const struct upload_call *spec, struct error *err);
/* What S3 says of an error of such a call. */
enum s3_error upload_call_failure(const struct error *err, struct s3_failure *why);
