/* One connection, driven by its reactor. */
#pragma once

#include <netinet/in.h>

#include "net/http/body_pace.h"
#include "net/http/chunk.h"
#include "net/http/reactor.h"
#include "net/http/request.h"

enum conn_state {
    CONN_HEAD,     /* the head of the next request is being read */
    CONN_REQUEST,  /* the request is its handler's; its body is read */
    CONN_UNWANTED, /* its reply is there; its body is read and thrown away first */
    CONN_REPLY,    /* the reply is being written */
    CONN_DRAIN,    /* the reply is out, the rest of the body is read and thrown away */
    CONN_CLOSING,  /* the write side is closed; what still comes is thrown away */
};

/* What a step of a connection comes to. */
enum conn_verdict {
    CONN_AGAIN,  /* go on */
    CONN_WAIT,   /* for the socket, or (asleep) for a wake-up */
    CONN_DONE,   /* the reply is out */
    CONN_CLOSE,  /* now */
    CONN_LINGER, /* now, but the peer still sends */
};

struct conn_link {
    struct conn *next;
    struct conn *previous;
};

struct conn {
    struct reactor *reactor;
    int fd;
    struct sockaddr_storage peer;
    enum conn_state state;
    bool readable; /* as far as is known: until a call says EAGAIN */
    bool writable;
    bool peer_done;       /* the end of the input is there, behind what can still be read */
    bool asleep;          /* waits for request_wake() alone */
    bool dozing;          /* waits for the socket or request_wake() */
    bool is_ready;        /* in the reactor's list … */
    bool spoke;           /* has begun a request: until then it is fresh */
    bool proven;          /* a request of it was signed */
    uint64_t ready_since; /* … from this round on */
    uint64_t moved_ms;
    size_t budget; /* of this turn, in bytes */

    /* Input.  While the connection runs, it is in the reactor's memory; what is left over between
     * turns is kept in `saved`. */
    char *in;
    size_t in_len;
    char *saved;
    size_t head_scanned;
    bool head_begun; /* more than empty lines */

    /* The request under way. */
    struct http_request *req;
    bool http_1_0;
    bool keep_alive;
    bool chunked;       /* its body */
    bool continued;     /* "100 Continue" is not waited for any more */
    uint64_t body_left; /* when it is not chunked */
    struct chunks chunks;
    struct body_pace pace; /* of the body */

    /* The reply under way. */
    struct buf out; /* bytes that are to be sent next: from out_at on */
    size_t out_at;
    uint64_t reply_at; /* how much of the body is out, or in `out` */
    bool reply_chunked;
    bool reply_ended;      /* the last of it is in `out` */
    bool send_buffer_fits; /* has been made small, for a near client */

    struct conn_link live;
    struct conn_link ready;
    struct conn *next_message; /* woken or adopted */
};

extern const struct request_link conn_request_link;

struct conn *conn_new(struct reactor *r, int fd, const struct sockaddr *peer, socklen_t peer_len);
/* Whether something from outside may run it: not while it sleeps, or a wake-up is under way. */
bool conn_rouse(struct conn *c);
/* One turn: as much as it can do, or its budget allows.  May free it. */
void conn_run(struct conn *c);
/* Nothing has moved for too long. */
void conn_timeout(struct conn *c);
/* Does it wait for a request of which no more has come than is read? */
bool conn_is_silent(const struct conn *c);
/* Ends its request, closes. */
void conn_free(struct conn *c);

/* conn_reply.c */
enum conn_verdict conn_reply_begin(struct conn *c);
enum conn_verdict conn_reply_step(struct conn *c);
