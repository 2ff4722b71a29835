/* What a handler of the HTTP server sees: the rows of route tables, requests, bodies, replies.
 *
 * The life of a request
 *
 *   headers parsed ─▶ route found ─▶ begin(req) ─▶ [body] ─▶ reply ─▶ on_end hooks
 *
 *   begin() runs once in an HTTP thread, before any body byte, and does one of these:
 *     - replies (http_reply_*): the body, if any, is not read further than HTTP needs
 *     - http_collect_body(): the whole body, bounded, then fn(req, data, len)
 *     - http_take_body(): the body in pieces as they arrive, for streaming to disk or a peer
 *     - returns without any of them: the request is *parked*; some other thread replies later
 *       with the same http_reply_* calls, which wake the connection.
 *   Exactly one reply per request.  After it the request may end at any moment: the thread that
 *   replied must not touch it again.  A client that goes away while a request is parked does not
 *   end the request: the reply is dropped, then on_end runs; so parked work may use `req` until
 *   it replies, and always must.
 *
 * HTTP threads serve many connections: handlers do nothing slow in them.
 *
 * Limits (connections, per-connection memory, body sizes, idle time) are parameters; what is over
 * a limit gets 413/414/431/503 with Retry-After, never silence. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/arena.h"
#include "common/error.h"
#include "common/rights.h"
#include "net/http/http.h"

struct buf;
struct http_request;
struct reader;

/* How errors of a request are written, where it is not the JSON of http_reply_error(). */
struct http_error_form {
    const char *content_type;
    const char *id_header; /* has the request's id, beside X-Request-Id */
    /* Appends the document; returns the status. */
    int (*put)(const struct http_request *req, const struct error *err, struct buf *out);
};

/* Another API that clients of a listener may speak on the same paths.  Its routes stand in the
 * tables below a prefix of its own ("/ais"), which is put before the path of a request that speaks
 * it; a path that has the prefix already speaks it, too. */
struct http_dialect {
    const char *prefix;
    bool (*speaks)(const struct http_request *req); /* by its head and raw query; no route yet */
    /* What stands between the prefix and the path: calls that the query alone tells apart are
     * routes of their own ("/uploads").  "" as a rule.  NULL: it has none. */
    const char *(*section)(const struct http_request *req);
    const struct http_error_form *error_form; /* of its requests; NULL: the listener's */
    bool plus_is_blank; /* in queries, as HTML's forms have it; else '+' is a plus */
};

/* Which listeners serve a route. */
enum http_net {
    NET_PUBLIC = 1,
    NET_CONTROL = 2,
    NET_DATA = 4,
    NET_ALL = 7,
    NET_ADMIN = 8, /* the calls of the public one, and operators' calls under their rights.  The
                    * public one has these, too, where its guard asks for rights and there is no
                    * admin listener */
    NET_S3 = 16,   /* S3 requests alone */
    NET_CLIENTS = NET_PUBLIC | NET_S3 |
                  NET_ADMIN, /* listeners that clients reach, and nodes need no proof on */
};

/* A parameter of a call's query.  What a call does not have is refused (query.h). */
struct http_parameter {
    const char *name;  /* NULL ends a list */
    const char *value; /* what it takes: "true: without targets that cannot be asked" */
};
/* In place of a name: whatever comes, where a call sends its client on to who looks. */
#define HTTP_ANY_PARAMETER "*"
#define HTTP_PARAMETERS(...) ((const struct http_parameter[]){__VA_ARGS__, {NULL, NULL}})

/* One call of the API: a row of a daemon's route table.  From the same rows come the dispatch, the
 * metrics' labels, GET /v1/api and docs/reference/http-api.md. */
struct http_route {
    const char *name; /* "object_get": metric label, anchor in the docs.  NULL ends a table */
    enum http_method method;
    const char *pattern; /* "/v1/objects/{bucket}/{object...}"; {x} one segment, {x...} the rest */
    unsigned nets;       /* enum http_net */
    /* On the intra-cluster listeners a caller proves that it is a node (gate.h), unless: */
    bool open;        /* anybody may call this there, and on admin listeners, too */
    bool any_cluster; /* looks itself at which cluster the caller belongs to; else: ours alone */
    bool fenced;      /* an order of the primary: refused from one whose term is over */
    bool changes;     /* a line in the log for each call; at any log level where it is admin */
    bool any_type;    /* its body is bytes of any Content-Type; else it is JSON */
    bool pages;       /* it decides itself about web pages of other sites: http_is_foreign() */
    bool admin;       /* an operator's call, signed as a node's is */
    enum right right; /* what a user needs to make the call, once access control asks */
    /* What a proof of a call signs in place of the method (access/guard.h); NULL: the method.  A
     * proof has no path, so that routes of one method, bucket and object have each their own. */
    const char *signs;
    const char *object; /* for rights and proofs, where the pattern has no {object}; or NULL */
    void (*begin)(struct http_request *req);
    const char *summary;                /* one sentence */
    const struct http_parameter *query; /* HTTP_PARAMETERS({"offset", "bytes"}); NULL: none */
    const char *body;                   /* what the body is, "" for none */
    const char *reply;                  /* what comes back */
    const char *errors;                 /* codes of error.def that are particular to the call */
};

/* May more of a request's bytes go now? */
enum http_pace {
    HTTP_PACE_FREE, /* as fast as they can */
    HTTP_PACE_GO,   /* a few, then the next question */
    HTTP_PACE_WAIT, /* none: the connection rests, and asks again soon */
};

/* Access control of a public listener. */
struct http_guard {
    /* Asked once for each request, also for one without a route (http_route() is NULL): may its
     * caller do this?  What is wrong with its parameters is told only to a caller that may, and its
     * body has not been looked at.  0, or the code of the refusal. */
    int (*open)(void *ctx, struct http_request *req, struct error *err);
    /* Or NULL.  Asked in the request's HTTP thread before each turn of its connection, body and
     * reply alike; http_bytes() says what has gone.  (libmicrohttpd: not asked.) */
    enum http_pace (*pace)(void *ctx, struct http_request *req);
    void *ctx;
    bool asks_rights; /* a public listener then has operators' calls, too */
};

/* Told of each request when it is over, before its hooks run; in its HTTP thread. */
struct http_witness {
    void (*ended)(void *ctx, struct http_request *req);
    void *ctx;
};

/* --- the request; every text lives as long as the request ------------------------------------- */
void *http_user(const struct http_request *req);
enum http_method http_method(const struct http_request *req);
const struct http_route *http_route(const struct http_request *req);
enum http_net http_listener(const struct http_request *req); /* where it came in */
const char *http_path(const struct http_request *req);       /* as received, still escaped */
const char *http_raw_query(const struct http_request *req);  /* "a=b&c=d" still escaped, or "" */
const char *http_path_param(const struct http_request *req, const char *name); /* decoded */
const char *http_object(const struct http_request *req); /* the path's {object}, or the route's */
/* Decoded, or NULL; only what the call's row names.  `a` alone has the value ""; of two with one
 * name the first counts; '+' is a plus, as in a path. */
const char *http_query(const struct http_request *req, const char *name);
const char *http_header(const struct http_request *req, const char *name); /* the first, or NULL */
/* Of a header that is a list and may stand several times: all of it, "a, b" (RFC 9110 section 5.3).
 */
const char *http_header_list(struct http_request *req, const char *name);
void http_each_header(struct http_request *req,
                      void (*fn)(void *ctx, const char *name, const char *value), void *ctx);
/* -1: chunked, length unknown; 0: no body. */
int64_t http_content_length(const struct http_request *req);
/* A body of unknown length from a client that does not wait to be told to go on.  Where the client
 * is redirected it has spent a part of it, or all: most then send an empty one, and call it done.
 */
bool http_body_comes_once(const struct http_request *req);
/* Is it of a web page that the listener's rules refuse (visitor.h)?  Of a route with `pages`. */
bool http_is_foreign(const struct http_request *req);
const char *http_request_id(const struct http_request *req); /* the client's X-Request-Id or ours */
struct arena *http_arena(struct http_request *req); /* in the thread that handles the request */
const char *http_peer(struct http_request *req);    /* "127.0.0.1:4711" */
/* Who asks, as the guard found out; NULL without one.  Lives as long as the request. */
void http_set_caller(struct http_request *req, void *caller);
void *http_caller(const struct http_request *req);

/* For whom it is: the user whom the guard has found, or who another node says has asked it
 * (Dfc-User, on the listeners between nodes alone, where it is signed). */
struct http_actor {
    const char *id;   /* NULL: nobody who is known */
    const char *name; /* never NULL: HTTP_ACTOR_… where there is no user */
};
#define HTTP_ACTOR_ANYBODY "anonymous"
#define HTTP_ACTOR_KEY "(cluster key)" /* signed, and for no user */
#define HTTP_ACTOR_HEADER "Dfc-User"   /* "ID NAME" */
const struct http_actor *http_actor(const struct http_request *req);
void http_set_actor(struct http_request *req, const char *id, const char *name); /* copied */
/* What it is about, where its route does not say: texts that live as long as the request. */
struct http_subject {
    const char *op;     /* "PutObject" */
    const char *bucket; /* NULL: of none … */
    const char *object; /* … and so on */
    bool changes;
};
void http_set_subject(struct http_request *req, const struct http_subject *subject); /* copied */
/* NULL: the route says it. */
const struct http_subject *http_subject(const struct http_request *req);
/* What has become of it; when it is over. */
struct http_outcome {
    unsigned status;  /* 499: the client was gone before the reply */
    const char *code; /* of an error reply that this node has made; else NULL */
    bool let_in;      /* by the guard, or by the gate between nodes */
    uint64_t bytes_in, bytes_out, ms;
};
void http_outcome(const struct http_request *req, struct http_outcome *out);
/* Bytes of body and reply that have gone so far; in its HTTP thread. */
uint64_t http_bytes(const struct http_request *req);
/* Runs once when the request ends, whatever way; last registered first. */
void http_on_end(struct http_request *req, void (*fn)(void *arg), void *arg);
/* The connection is not closed for being idle while still(ctx) is true: for streams between nodes,
 * whose other end may wait for third ones for as long as it takes.  Called by the handler in
 * begin() or in what takes a collected body; asked in an HTTP thread at each idle timeout, until
 * the request ends.  A peer that is gone is found by TCP's keepalive.  (libmicrohttpd: not heeded.)
 */
void http_be_patient(struct http_request *req, bool (*still)(void *ctx), void *ctx);

/* --- the body --------------------------------------------------------------------------------- */
/* The whole body, then fn, in an HTTP thread, or for more than 256 KiB in another one; bigger than
 * max is refused with E_TOO_LARGE.  `data` is NUL-terminated and lives as long as the request. */
void http_collect_body(struct http_request *req, size_t max,
                       void (*fn)(struct http_request *req, const char *data, size_t len));

struct http_body_ops {
    /* Returns how much was taken, 0..len.  Taking less pauses the upload until
     * http_resume_body(), which may come from any thread, also before data() has returned.
     * A handler that has replied meanwhile takes no more: the rest is dropped. */
    size_t (*data)(struct http_request *req, void *ctx, const char *data, size_t len);
    void (*end)(struct http_request *req, void *ctx); /* the whole body has come */
    /* The body was cut short (the client went away, stalled, or sent what is no body): the handler
     * does not reply any more; called instead of end().  The request ends right after it, so when
     * cut() has returned no thread may touch it. */
    void (*cut)(struct http_request *req, void *ctx);
};
void http_take_body(struct http_request *req, const struct http_body_ops *ops, void *ctx);
void http_resume_body(struct http_request *req);

/* --- the reply -------------------------------------------------------------------------------- */
/* A header of the reply to come; copied.  Before the reply, by the thread that will reply.  Those
 * that the connection writes itself (Connection, Content-Length, Transfer-Encoding, Date) are
 * passed over. */
void http_reply_header(struct http_request *req, const char *name, const char *value);
/* The same for texts that live for ever: nothing is looked at or copied. */
void http_reply_constant(struct http_request *req, const char *name, const char *value);
void http_reply_empty(struct http_request *req, int status);
void http_reply_data(struct http_request *req, int status, const char *content_type,
                     const void *data, size_t len); /* copied */
/* The same of memory of malloc() that is taken over; the type is among the headers. */
void http_reply_taken(struct http_request *req, int status, char *data, size_t len);
void http_reply_json(struct http_request *req, int status, const json_t *value);
/* {"status", "code", "message", "node", "request_id"}, or the request's own form; Retry-After: 1
 * with 429 and 503. */
void http_reply_error(struct http_request *req, const struct error *err);
/* That document, for a form of one's own: `subject` stands before the message. */
void http_put_error_json(const struct http_request *req, const char *subject,
                         const struct error *err, struct buf *out);
/* All errors of this request from now on; by the thread that handles it.  `form` lives for ever. */
void http_set_error_form(struct http_request *req, const struct http_error_form *form);
void http_reply_redirect(struct http_request *req, const char *location); /* 307 */
/* Bytes of a file; the descriptor is closed when the request ends.  Small ones are read into the
 * same send as the headers, large ones go by sendfile.  A file that is shorter is an error reply.
 *
 * With a reader (of the disk that the file lies on; the reference is taken over) no HTTP thread
 * waits for the disk: what is not in memory is fetched by the reader's threads, piece by piece,
 * while the connection sleeps.  The caller has then seen that the file is long enough; a large one
 * that is not is a reply that is cut. */
void http_reply_file(struct http_request *req, int status, int fd, uint64_t offset, uint64_t length,
                     struct reader *reader);

struct http_stream_ops {
    /* Up to max bytes into out: > 0 bytes, 0 = none now (http_wake() when there are),
     * HTTP_STREAM_END, or HTTP_STREAM_CUT: the connection is cut, so that the reply cannot look
     * complete. Runs in an HTTP thread. */
    ssize_t (*read)(void *ctx, char *out, size_t max);
    void (*free)(void *ctx);
    /* Or NULL.  Instead of read(), where the client's connection is plain and the reply's length is
     * known: up to max bytes straight into its socket.  The same values, or HTTP_STREAM_FULL where
     * the socket takes none now, HTTP_STREAM_COPY where the next bytes come by read(). */
    ssize_t (*splice)(void *ctx, int to, size_t max);
};
enum {
    HTTP_STREAM_END = -1,
    HTTP_STREAM_CUT = -2,
    HTTP_STREAM_FULL = -3,
    HTTP_STREAM_COPY = -4,
};
/* length -1: unknown, chunked. */
void http_reply_stream(struct http_request *req, int status, int64_t length,
                       const struct http_stream_ops *ops, void *ctx);
/* There is data now.  Any thread; valid until the stream's free() has been called. */
void http_wake(struct http_request *req);

/* --- another handler -------------------------------------------------------------------------- */
/* A request that another handler of this node carries out, in the same thread: the first one
 * translates its head, its body and its reply.  Nothing is copied: a file still goes by sendfile.
 *
 *   client ── request ──▶ first ── http_recast() ──▶ the other's begin()
 *   client ◀── reply ──── replied() ◀─────────────────── its reply
 */
struct http_recast {
    void (*begin)(struct http_request *req); /* of the other */
    /* All that the other sees of the head; there is no query. */
    enum http_method method;
    const struct http_parameter *path; /* decoded; ends with a NULL name */
    const char *const *headers;        /* "Name: value", NULL-terminated */
    int64_t content_length;            /* http_content_length() */
    /* Where the body is not for the other as it comes: what takes it, with `ctx`.  It gives the
     * other's functions, which takes() tells it of, what they are to have.  NULL: as it comes. */
    const struct http_body_ops *body;
    void (*takes)(void *ctx, const struct http_body_ops *other, void *other_ctx);
    /* In place of the client, in the thread that replies: a reply, or with `failure` an error in
     * place of one.  Ends with http_reply_as_it_is(), or with http_reply_drop() and a reply. */
    void (*replied)(struct http_request *req, void *ctx, const struct error *failure);
    void *ctx;
};
/* From begin(); its last call.  `as` and its texts live as long as the request. */
void http_recast(struct http_request *req, const struct http_recast *as);
/* In replied(): what the other has replied.  Its headers are taken out of the reply. */
int http_reply_status(const struct http_request *req);
int64_t http_reply_length(const struct http_request *req); /* of the body; -1: unknown */
void http_reply_take_headers(struct http_request *req,
                             void (*fn)(void *ctx, const char *name, const char *value), void *ctx);
void http_reply_as_it_is(struct http_request *req, int status); /* but for its status */
void http_reply_drop(struct http_request *req);
/* From a function of `body`, which finds that it is wrong: the body is cut (http_body_ops).  True:
 * the other has not replied, and will not; the caller does, after http_reply_drop(). */
bool http_refuse_body(struct http_request *req);

/* Markdown of route tables, for docs/reference/http-api.md; JSON of them, for GET /v1/api. */
void http_routes_markdown(const struct http_route *const *tables, struct buf *out);
json_t *http_routes_json(const struct http_route *const *tables);
