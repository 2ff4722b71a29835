/* A running server: what its connections and requests share, and tell it.  server.c begins and ends
 * it. */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/metrics.h"
#include "net/http/body_pace.h"
#include "net/http/request_types.h"
#include "net/http/router.h"

struct auth;
struct closer;
struct loop;
struct peers;
struct pool;
struct listener;
struct mhd;
struct reactor;
struct tls;
struct visitor_rules;

enum {
    /* A list's prefix, delimiter, start_after and place (or token), of 1024 bytes each, all
       escaped. */
    SERVER_URI_MAX = 16 * 1024,
    /* A body that nobody wants is read to its end, so that the connection can go on, if it is no
     * longer than this; else the connection is closed. */
    SERVER_DRAIN_MAX = 64 * 1024,
    /* One whose client waits for "100 Continue" is asked for all the same up to this length. */
    SERVER_EXPECTED_MAX = 16 * 1024,
    /* Bodies up to this size are read and sent together with the headers. */
    SERVER_SMALL_FILE_MAX = 32 * 1024,
    SERVER_COLLECT_SMALL = 64 * 1024, /* of one request: let in whatever the others keep */
    /* A collected body up to this length is handled in its HTTP thread, a longer one elsewhere. */
    SERVER_BODY_AT_ONCE = 256 * 1024,
    SERVER_BODIES_QUEUE = 64,
    /* Memory of parsed bodies after which the allocator's is given back to the system. */
    SERVER_TRIM_BYTES = 64 * 1024 * 1024,
    SERVER_PEER_PERCENT = 75, /* of the connections that one address may have */
};

/* The metrics of one route; filled when first used. */
struct route_metrics {
    _Atomic(metric_t *) requests[6]; /* by status class */
    _Atomic(metric_t *) seconds;
};

struct http_server {
    char *node;
    enum http_net net;
    unsigned connections_max;
    unsigned peer_connections_max; /* of one address */
    size_t headers_max;
    void *user;
    struct router *router;
    struct router *elsewhere;      /* of a public one: what the control listener has */
    bool admin_is_elsewhere;       /* … and operators find on the admin listener */
    struct route_metrics *metrics; /* one for each route, and one for none */
    metric_t *received_bytes;
    metric_t *sent_bytes;
    metric_t *connections_gauge;
    metric_t *overload;
    metric_t *unauthorized;
    metric_t *handshakes_failed;
    struct tls *tls;                          /* NULL: plain */
    struct auth *auth;                        /* NULL: nobody is asked for proof */
    const struct visitor_rules *visitors;     /* NULL: nobody is asked where from */
    const struct http_guard *guard;           /* NULL: everybody may do everything */
    const struct http_witness *witness;       /* NULL: nobody is told */
    const struct http_error_form *error_form; /* NULL: JSON */
    const struct http_dialect *dialect;       /* NULL: none */
    atomic_ullong complained_ms;              /* of somebody who was refused, last */
    char run[16]; /* random: distinguishes the request ids of this run */
    atomic_uint_fast64_t next_id;
    atomic_uint connections;
    struct peers *peers;      /* whose they are */
    atomic_uint newcomers;    /* of them, those that look for room (room.h) */
    atomic_ullong no_room_ms; /* when the last search found none; 0: none has failed */
    atomic_uint silent;       /* of them, those that have asked nothing yet */
    bool asks_for_proof; /* callers prove to be nodes: a connection that does not has one request */
    struct body_rate body_rate;
    size_t collect_memory;
    atomic_size_t
        collected;        /* memory of bodies that are kept whole, and of what is parsed of them */
    atomic_size_t parsed; /* memory that parsed bodies took since the last trim */
    struct pool *bodies;  /* one thread, for large ones */
    atomic_bool draining; /* each connection has one more reply at most */
    atomic_bool leaving;  /* the same, and new connections are still taken */
    atomic_bool over;     /* new requests get 503 */

    struct loop *loop; /* accepts, and closes slowly */
    struct listener *listener;
    struct closer *closer;
    size_t reactor_count;
    struct reactor **reactors;
    struct mhd *mhd; /* or this instead of the reactors */

    pthread_mutex_t lock; /* guards the list; taken before a request's lock */
    pthread_cond_t changed;
    struct http_request *requests;
    size_t request_count;
};

/* The connections' entrance and exit, for the gauge and the limit. */
void server_connection_opened(struct http_server *s);
void server_connection_closed(struct http_server *s, const struct sockaddr *peer);
/* A connection was taken in; it has begun its first request, or is gone without one. */
void server_connection_silent(struct http_server *s);
void server_connection_spoke(struct http_server *s);
/* Must a connection prove itself to be kept? */
bool server_asks_for_proof(const struct http_server *s);
/* How long a connection may take for its first head: `usual_ms`, and where callers prove to be
 * nodes SERVER_CROWDED_MS while more than one of SERVER_SILENT_SHARE of all that are allowed is
 * silent.  A node speaks at once; so silent ones do not keep it out for long. */
enum { SERVER_SILENT_SHARE = 4, SERVER_CROWDED_MS = 1000 };
uint64_t server_head_timeout_ms(struct http_server *s, uint64_t usual_ms);

void server_add_request(struct http_server *s, struct http_request *req);
void server_remove_request(struct http_server *s, struct http_request *req);
bool server_is_draining(struct http_server *s);
/* Is the next reply of a connection its last? */
bool server_keeps_no_connection(struct http_server *s);
bool server_is_over(struct http_server *s);
/* The server ends: who replies then does so under its lock, and tells it. */
void server_lock(struct http_server *s);
void server_changed_and_unlock(struct http_server *s);
/* Of its reply; 499: the client cut its body, so there was none. */
int server_status(const struct http_request *req);
void server_count_request(struct http_server *s, const struct http_request *req);
/* Room for more of a body of which `own` bytes are kept already.  False: other bodies have it all;
 * one that is alone may be as long as its call allows. */
bool server_take_collected(struct http_server *s, size_t own, size_t more);
void server_give_collected(struct http_server *s, size_t bytes);
