/* A reactor and its connections: their fields.  All but the reactor's last ones belong to its
 * thread. */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "net/http/body_pace.h"
#include "net/syntax/chunk.h"

struct conn;
struct http_guest;
struct http_request;
struct http_server;
struct reactor;
struct tls_session;

enum {
    REACTOR_REST_MS = 20, /* a connection that rests asks again after this */
    /* What one read of a socket can bring at most, and so what a connection may hold back. */
    REACTOR_INPUT_BYTES = 256 * 1024,
    REACTOR_EVENTS = 256, /* that one look at the sockets brings at most */
};

/* What a reactor watches: the first field of a connection, and of a guest. */
struct reactor_source {
    void (*event)(struct reactor_source *source, uint32_t events);
};

struct conn_list {
    struct conn *first;
    struct conn *last;
};

/* Work for a reactor's thread; its memory is the caller's. */
struct reactor_job {
    void (*run)(struct reactor *r, struct reactor_job *job);
    struct reactor_job *next;
};

struct reactor {
    struct http_server *server;
    uint64_t timeout_ms;
    uint64_t head_timeout_ms; /* for the first head of a connection; no longer than timeout_ms */
    uint64_t handshake_timeout_ms;
    unsigned handshakes_max; /* under way at one time */
    int epoll_fd;
    int wake_fd;
    pthread_t thread;
    atomic_uint load; /* connections */

    /* The reactor's thread only. */
    char *input;                   /* borrowed by the connection that runs */
    struct buf text;               /* for the head of a reply */
    struct buf plain;              /* under TLS: a piece of a reply before it is sealed */
    uint64_t now_ms;               /* when the thread last woke … */
    uint64_t round;                /* … and how often it has */
    uint64_t look_ms;              /* when a series of looks at the sockets began … */
    unsigned looked;               /* … and the events that it has brought */
    uint64_t read_ms;              /* what had come by then has been read */
    struct conn_list fresh;        /* connections without a request yet, the oldest first */
    struct conn_list shaking;      /* those in the handshake of TLS, the oldest first … */
    unsigned handshakes;           /* … and their number */
    struct conn_list waiting;      /* fresh ones that wait for one of these to end */
    struct conn_list live;         /* the others, the one that has been still for longest first */
    struct conn_list ready;        /* have more to do than one turn */
    struct conn_list resting;      /* may do nothing for now, the first to ask again first */
    struct http_guest *guests;     /* sockets of handlers (guest.h) … */
    struct http_guest *left;       /* … and those of which this round may still have an event */
    uint64_t ticked_ms;            /* when the guests had their last tick … */
    struct http_guest *next_guest; /* … and who has its next; NULL between ticks */
    bool has_messages;             /* from its own thread, which needs no signal */

    pthread_mutex_t lock; /* guards what follows; taken after a request's */
    struct conn_list woken;
    struct conn_list adopted;
    struct reactor_job *jobs; /* the last first */
    bool signalled;
    bool stopping;
};

enum conn_state {
    CONN_HELLO,     /* of a listener with TLS: does a handshake come, or plain HTTP? */
    CONN_HANDSHAKE, /* of TLS */
    CONN_HEAD,      /* the head of the next request is being read */
    CONN_REQUEST,   /* the request is its handler's; its body is read */
    CONN_UNWANTED,  /* its reply is there; its body is read and thrown away first */
    CONN_REPLY,     /* the reply is being written */
    CONN_DRAIN,     /* the reply is out, the rest of the body is read and thrown away */
    CONN_CLOSING,   /* the write side is closed; what still comes is thrown away */
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
    struct reactor_source source;
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
    bool is_waiting;      /* in that of handshakes that have not begun */
    bool spoke;           /* has begun a request: until then it is fresh */
    bool proven;          /* a request of it was signed */
    uint64_t ready_since; /* … from this round on */
    bool is_resting;
    uint64_t rests_since;
    uint64_t moved_ms;
    size_t budget; /* of this turn, in bytes */

    struct tls_session *tls; /* NULL: plain */

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

    struct conn_list *list; /* fresh, shaking or live */
    struct conn_link live;
    struct conn_link ready;
    struct conn_link resting;
    struct conn *next_message; /* woken or adopted */
};
