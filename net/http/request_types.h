/* The fields of a request; request.h says how it lives, and who may touch what when. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "common/buf.h"
#include "common/checksum.h"
#include "net/http/handler.h"
#include "net/http/router.h"

struct http_server;

enum request_state {
    REQUEST_NEW,
    REQUEST_OWED,
    REQUEST_BODY,
    REQUEST_REPLIED,
};

struct request_header {
    const char *name;
    const char *value;
    struct request_header *next;
};

struct request_hook {
    void (*fn)(void *arg);
    void *arg;
    struct request_hook *next;
};

enum reply_kind { REPLY_EMPTY, REPLY_DATA, REPLY_FILE, REPLY_STREAM };

struct reply {
    int status;
    const char *code; /* of an error; or NULL */
    enum reply_kind kind;
    struct request_header *headers; /* in order */
    struct request_header **headers_end;
    char *data;     /* REPLY_DATA: malloc'ed */
    int64_t length; /* of the body; -1: unknown */
    int fd;         /* REPLY_FILE; -1 once it is handed over */
    uint64_t offset;
    struct reader *reader; /* NULL: whoever reads the file waits for it */
    uint64_t fetched;      /* of the body: it is in memory up to here, as far as was looked */
    bool fetching;         /* the next piece is asked for; the HTTP thread's … */
    int fetch_code;        /* … and why it could not be had */
    const struct http_stream_ops *ops; /* REPLY_STREAM */
    void *ctx;
};

/* How the body is taken. */
enum body_mode {
    BODY_UNTAKEN,
    BODY_COLLECTED,
    BODY_TAKEN,
};

struct request_body {
    enum body_mode mode;
    uint64_t received;
    size_t max; /* collected */
    struct buf data;
    size_t charged; /* memory that its values take, beside its length */
    void (*collected)(struct http_request *req, const char *data, size_t len);
    const struct http_body_ops *ops; /* taken */
    void *ctx;
};

/* What a connection layer does for its requests. */
struct request_link {
    /* Called with the request's lock held, by request_sleep() and request_wake(). */
    void (*sleep)(struct http_request *req);
    void (*wake)(struct http_request *req);
};

struct http_request {
    unsigned magic;
    struct http_server *server;
    struct arena *arena;
    const struct request_link *link;
    void *connection; /* the link's own … */
    int step;         /* … and how far it is */
    const struct sockaddr *peer;

    enum http_method method;
    const char *path;
    const char *query;
    struct request_header *headers; /* in order */
    struct request_header **headers_end;
    int64_t content_length;
    bool expects_continue;
    const char *id;
    struct router_match match;
    bool let_in;  /* by the gate */
    bool proven;  /* signed by a node or an operator */
    bool foreign; /* of a web page that visitor.h refuses; http_route.pages */
    void *caller; /* the guard's; or NULL */
    struct http_actor actor;
    const struct http_recast *recast;         /* until the other handler has replied; or NULL */
    struct request_header **recast_headers;   /* where its headers of the reply begin */
    const struct http_error_form *error_form; /* NULL: JSON */
    const struct http_subject *subject;       /* NULL: what its route says */
    const char *params[ROUTER_PARAMS_MAX];    /* unescaped */
    struct request_header *queries;           /* unescaped pairs */
    uint64_t began_us;
    struct request_hook *hooks; /* last registered first */
    struct request_body body;
    struct checksum *digested; /* of the body so far, where the caller has signed it … */
    const char *digest;        /* … as this; the gate's */
    struct reply reply;
    uint64_t sent_bytes;
    bool linger;                /* the rest of an unread body must not reset the connection */
    bool (*patient)(void *ctx); /* NULL, or whether an idle connection is kept */
    void *patient_ctx;

    struct http_request *next; /* the server's list, under the server's lock */
    struct http_request *previous;

    pthread_mutex_t lock; /* guards what follows */
    enum request_state state;
    bool asleep;
    bool dozing;
    bool woken;
    bool aborted; /* the server ends: a body or a stream is not waited for */
    bool fetches; /* a reader's thread is at the file: the request stays until it is done */
};

static inline bool request_has_body(const struct http_request *req)
{
    return req->content_length != 0;
}
