/* A read of another node, in the HTTP thread of the request that it is for: no other thread has
 * part in it, and the connection to the node is kept for the next one.
 *
 *   client ◀── reply ── HTTP thread ── GET ──▶ node
 *                 │          │
 *                 │          └ a kept connection (lines.h), watched beside the client's (guest.h)
 *                 └ up to DIRECT_SMALL_BYTES from memory, more by splice(2)
 *
 *     direct_takes()     can this URL be read so?  Else: net/client
 *     direct_start()     → head() once it is there, then done() once; or elsewhere()
 *     direct_reply()     in done(): the body that came is that of the reply
 *
 * A kept connection may have died: then the read is repeated on a new one, if no byte of a reply
 * has come.  A node that sends nothing for the client's stall timeout, whose machine acknowledges
 * nothing, or that ends early, is an error in done(); once the reply has begun, the client's
 * connection is cut.
 *
 * Memory of a read is DIRECT_SMALL_BYTES and a head. */
#pragma once

#include "net/client/result.h"
#include "net/http/handler.h"

struct direct;
struct direct_reader;
struct http_client;

enum {
    DIRECT_SMALL_BYTES = 64 << 10, /* such a body is read before the reply begins */
    DIRECT_HEAD_BYTES = 64 << 10,  /* of a reply's head and those before it (1xx), at most */
};

struct direct_config {
    struct http_client *client; /* whose timeouts hold here, too */
    size_t kept_max;            /* connections that are kept */
};

struct direct_reader *direct_reader_new(const struct direct_config *config);
/* After the servers of all requests, before the client.  NULL is fine. */
void direct_reader_free(struct direct_reader *r);

struct direct_call {
    enum http_method method; /* HTTP_GET or HTTP_HEAD */
    const char *url;
    const char *const *headers; /* as those of struct http_call */
    /* In the request's HTTP thread, within direct_start() if that runs there.  The head ends with
     * head(); texts are the callee's to copy. */
    void (*head)(void *arg, const struct http_head *head);
    /* `d` has the body of a 2xx, for direct_reply() now or never; else NULL, and a document of
     * `result` is an error's. */
    void (*done)(void *arg, struct http_result *result, struct direct *d);
    /* In place of both: the address of the URL's name is not known.  The callee reads by
     * net/client, and tells direct_learn() where from. */
    void (*elsewhere)(void *arg);
    void *arg;
};

/* Plain HTTP, and a request that has an HTTP thread of ours. */
bool direct_takes(const struct http_request *req, const char *url);
/* Of a request whose reply is owed; any thread.  `call` and its texts are copied. */
void direct_start(struct direct_reader *r, struct http_request *req,
                  const struct direct_call *call);
/* A call to this URL went to `address` (struct http_result), just now.  Any thread. */
void direct_learn(struct direct_reader *r, const char *url, const char *address);
void direct_reply(struct direct *d, int status);
