/* The HTTP client of the daemons: libcurl's multi interface in one loop's thread, connections
 * reused, every call bounded in time.
 *
 * A call is started from any thread; everything it is given is copied, but for the pipes
 * and a body that stays (http_call.body_stays).
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

#include "common/error.h"
#include "io/loop.h"
#include "net/client/result.h"
#include "net/client/spec.h"

struct http_client;

int http_client_new(struct loop *loop, const struct http_client_config *config,
                    struct http_client **out, struct error *err);
/* What it was given, for calls to the same nodes that do without it (net/direct). */
const struct http_client_config *http_client_config_of(const struct http_client *c);
/* How long a call may stand still at this moment.  Any thread. */
uint64_t http_client_patience_ms(struct http_client *c);
/* From here on no call stands still for longer than this, whatever its own timeout: those of a node
 * that stops must not wait for one that does not answer. */
void http_client_hurry(struct http_client *c, uint64_t stall_timeout_ms);
/* Ends running calls with E_CANCELLED, and those that their done() starts; when it returns every
 * done() has returned.  A done() that always starts another call, whatever its result, would keep
 * this from returning. */
void http_client_free(struct http_client *c);

/* `done` owns nothing: it may steal(r->body.data) through buf_steal.  The pipe ends are finished or
 * cancelled before done() runs.  Returns the call's number, for http_call_cancel(). */
uint64_t http_call_start(struct http_client *c, const struct http_call *call,
                         void (*done)(void *arg, struct http_result *r), void *arg);
/* The call ends soon with E_CANCELLED, unless it has ended.  Any thread. */
void http_call_cancel(struct http_client *c, uint64_t number);
/* Blocks the calling thread (never the loop's).  Returns http_result_error()'s code. */
int http_call_wait(struct http_client *c, const struct http_call *call, struct http_result *r,
                   struct error *err);
/* JSON in, JSON out, of a node (http_call.node): POST/PUT of `in` (or no body), the reply parsed
 * into
 * *out (may be NULL). */
int http_json_wait(struct http_client *c, const char *node, enum http_method method,
                   const char *url, const json_t *in, uint64_t timeout_ms, json_t **out,
                   struct error *err);
