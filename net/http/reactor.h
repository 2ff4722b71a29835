/* A thread that drives connections: epoll, timeouts, and wake-ups from other threads. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/buf.h"
#include "common/error.h"

struct conn;
struct http_server;
struct reactor;

enum {
    /* What one read of a socket can bring at most, and so what a connection may hold back. */
    REACTOR_INPUT_BYTES = 256 * 1024,
    REACTOR_EVENTS = 256, /* that one look at the sockets brings at most */
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
    int epoll_fd;
    int wake_fd;
    pthread_t thread;
    atomic_uint load; /* connections */

    /* The reactor's thread only. */
    char *input;            /* borrowed by the connection that runs */
    struct buf text;        /* for the head of a reply */
    uint64_t now_ms;        /* when the thread last woke … */
    uint64_t round;         /* … and how often it has */
    uint64_t look_ms;       /* when a series of looks at the sockets began … */
    unsigned looked;        /* … and the events that it has brought */
    uint64_t read_ms;       /* what had come by then has been read */
    struct conn_list fresh; /* connections without a request yet, the oldest first */
    struct conn_list live;  /* the others, the one that has been still for longest first */
    struct conn_list ready; /* have more to do than one turn */

    pthread_mutex_t lock; /* guards what follows; taken after a request's */
    struct conn_list woken;
    struct conn_list adopted;
    struct reactor_job *jobs; /* the last first */
    bool signalled;
    bool stopping;
};

uint64_t reactor_head_timeout_ms(const struct reactor *r); /* at this moment */
int reactor_new(struct http_server *server, const char *thread_name, uint64_t timeout_ms,
                uint64_t head_timeout_ms, struct reactor **out, struct error *err);
/* Takes the descriptor of an accepted connection, which is counted already
 * (server_connection_opened).  Any thread. */
void reactor_adopt(struct reactor *r, int fd, const struct sockaddr *peer, socklen_t peer_len);
unsigned reactor_load(const struct reactor *r);
/* Runs the job soon in the reactor's thread; of one that has ended, in reactor_free()'s.  Any
 * thread. */
void reactor_run(struct reactor *r, struct reactor_job *job);
/* Ends the thread.  Other reactors may still give it jobs and connections. */
void reactor_stop(struct reactor *r);
/* Of one that has ended: takes what it was still given.  False: nothing. */
bool reactor_finish(struct reactor *r);
/* Closes the connections; no request may be owed, and all reactors of the server have ended. */
void reactor_free(struct reactor *r);

/* For connections.  reactor_wake: any thread; the others: the reactor's. */
void reactor_wake(struct reactor *r, struct conn *c);
void reactor_again(struct reactor *r, struct conn *c); /* after all others that are ready */
void reactor_touch(struct reactor *r, struct conn *c); /* it has made progress */
void reactor_spoke(struct reactor *r, struct conn *c); /* it is no longer fresh */
void reactor_forget(struct reactor *r, struct conn *c);
