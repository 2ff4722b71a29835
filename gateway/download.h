/* The bytes of a target's reply on their way to the client: the first ones by a pipe, and the rest
 * of a large reply from socket to socket (net/client/tap.h).
 *
 *   HTTP client ── pipe ──▶ ┐
 *   target's socket ─ tap ─▶ ┴ reply to the client
 *
 * Two ends, each with a reference: the call's and the reply's. */
#pragma once

#include <stdint.h>

struct bpipe;
struct download;
struct http_request;
struct tap;

struct download *download_new(size_t buffer_bytes);
void download_free(struct download *d); /* the call's reference; NULL is fine */

/* Where the call puts the bytes. */
struct bpipe *download_pipe(struct download *d);
/* What follows the pipe's bytes: taken over.  Before the pipe's end. */
void download_set_tap(struct download *d, struct tap *tap);

/* length -1: unknown. */
void download_reply(struct http_request *req, int status, int64_t length, struct download *d);
