/* The way in for S3 requests: on the S3 listener of a daemon (--s3-port), and below /s3 of its
 * public one.  Both kinds of daemon share it.
 *
 *   request ─▶ operation ─▶ signature ─▶ right ─▶ handler
 *                 │             │          │         └ 501 NotImplemented: the table has none
 *                 │             │          └ 403 AccessDenied, 503 SlowDown (rates)
 *                 │             └ 403: unknown key, wrong signature, a wrong time, …
 *                 └ 400, 405: no such operation; or the error that ops.def gives it
 *
 * A handler is one row of the daemon's table (proxy/s3/handlers.c) and one function:
 *
 *     {S3_OP_HeadBucket, head_bucket},
 *
 * The function runs as begin() of a route does (net/http/handler.h).  It replies with the calls of
 * gateway/reply.h or those of the server: http_reply_error() writes S3's document for any code.
 *
 * Without access control every caller may do everything, and signatures are not compared. */
#pragma once

#include "common/error.h"
#include "net/http/handler.h"
#include "s3/op.h"
#include "s3/verify.h"

struct direct_reader;
struct gateway;
struct http_client;
struct loop;
struct state_holder;

/* An S3 request; of the request's arena. */
struct gateway_call {
    struct gateway *gateway;
    const struct s3_op *op;
    struct s3_call s3;      /* bucket, key, query */
    struct s3_request head; /* as it was received */
    struct s3_credential credential;
    bool has_key; /* the signature was compared, with … */
    unsigned char signing_key[AUTH_MAC_BYTES];
};

struct gateway_handler {
    enum s3_op_id op;
    void (*begin)(struct http_request *req,
                  const struct gateway_call *call); /* NULL ends a table */
};

/* A target's own handlers of native calls to objects (local.h). */
struct gateway_local {
    const char *id; /* the target's; NULL: this node is none */
    void (*read)(struct http_request *req);
    void (*write)(struct http_request *req);
    void (*remove)(struct http_request *req);
};

struct gateway_config {
    const char *region;  /* the one that requests are signed for */
    const char *domains; /* "s3.example.org,…": buckets are names below them; or "" */
    bool asks_rights;    /* access control: the server's guard is that of access/guard.h */
    const struct gateway_handler *handlers;
    struct state_holder *state;
    /* Fetches this state ("1.17") or a later one, then calls fn(arg): of a node that hears of
     * changes later than proxies do.  NULL: it does not. */
    void (*renew)(void *ctx, const char *wanted, void (*fn)(void *arg), void *arg);
    void *ctx;
    struct gateway_local local;
    /* For calls to other nodes (forward.h, proxy_call.h). */
    struct http_client *client;
    struct direct_reader *direct; /* for reads; NULL: the client makes those, too */
    struct loop *loop;            /* the client's */
    const uint64_t *forwards_max; /* of them at once: a live parameter */
    size_t buffer_bytes;          /* of one, for each direction */
    const uint64_t *ping_ms;      /* blanks of a slow reply (slow_reply.h): a live parameter */
    uint64_t silence_ms;          /* of a target that ends a completion there (upload_watch.h) */
};

/* Copies texts; `handlers` are borrowed.  E_INVALID: a region or domain that is none. */
int gateway_new(const struct gateway_config *config, struct gateway **out, struct error *err);
void gateway_free(struct gateway *g); /* after servers and client; NULL is fine */

const char *gateway_region(const struct gateway *g);
/* What it was given; its texts are its own. */
const struct gateway_config *gateway_config_of(const struct gateway *g);
/* One more call to a target.  False: forwards_max are under way. */
bool gateway_enter_forward(struct gateway *g);
void gateway_leave_forward(struct gateway *g);
