/* A request's body into a bpipe, a bpipe out as a reply's body: the two joints between an HTTP
 * connection, which must not block, and whoever is at the other end of the pipe.
 *
 * Both deal with the end that goes away first: a wake-up that arrives from the pipe's other side
 * after the request has ended does nothing. */
#pragma once

#include <stdint.h>

#include "io/bpipe.h"
#include "net/http/handler.h"

/* Takes the body of `req` into `pipe` (a reference is taken), pausing the upload while the pipe is
 * full.  When the whole body is in the pipe it is finished and ended(req, ctx) is called, in an
 * HTTP thread; when the body is cut short the pipe is finished with E_CANCELLED instead.  When the
 * reader cancels, ended() is called with the next piece of the body, so that a reply can spare the
 * client the rest, which is dropped (bpipe_check() tells the two apart). */
void http_body_to_pipe(struct http_request *req, struct bpipe *pipe,
                       void (*ended)(struct http_request *req, void *ctx), void *ctx);

/* Replies with what comes out of `pipe` (a reference is taken); length -1: until its end.  An error
 * of the writer, or an end before `length`, cuts the connection, so that the reply cannot look
 * complete.  A client that leaves cancels the pipe. */
void http_reply_pipe(struct http_request *req, int status, int64_t length, struct bpipe *pipe);
