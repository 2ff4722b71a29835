/* A proxy: what its parts need of one another.
 *
 *   public listener ───▶ routes ──▶ snapshot (p->state): redirects, documents
 *   control listener ──▶         ├▶ proxy_commit() ──▶ control loop: apply, metastore, publish
 *                                ├▶ relay.c ─────────▶ data loop: bytes to and from targets
 *                                └▶ list.c ──────────▶ list loop: the targets' lists merged
 *   control loop: commit.c (the single writer), members.c (who is alive), publish.c (everybody
 *   gets the new state), follower.c (at a proxy that is not the primary: keepalives), the jobs
 *
 * Fields are set by proxy_start() in the order in which they stand here, before the first request
 * is let in, and do not change until proxy_free(); what changes has a lock or a thread of its own.
 *
 * One proxy is the primary (it was started without --join); it alone commits.  The others are
 * gateways: they answer what a snapshot can answer and pass the rest on to the primary. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "cluster/command.h"
#include "cluster/state.h"
#include "io/loop.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "proxy/metastore.h"
#include "proxy/params.h"

struct follower;
struct job_glue;
struct jobs_driver;
struct members;
struct publisher;

struct proxy {
    struct proxy_params params;
    const char *id;     /* params.id */
    char boot[16];      /* id of this run */
    bool is_primary;
    int lock_fd;        /* of params.dir */
    char *state_path;   /* of a gateway: the last state it saw */
    struct metastore *metastore; /* of the primary; the control loop's */
    struct state_holder *state;
    struct loop *loop;               /* the control loop */
    struct http_client *client;      /* in it */
    struct loop *data_loop;
    struct http_client *data_client;
    struct loop *list_loop;
    struct http_client *list_client;
    atomic_uint relays; /* under way */
    atomic_uint lists;
    atomic_ullong complained_ms; /* of a node that is ahead of this primary, last */
    struct http_server *public_server;
    struct http_server *control_server;
    char *public_url;
    char *control_url;
    struct publisher *publisher; /* primary */
    struct members *members;     /* primary */
    struct follower *follower;   /* gateway */
    struct jobs_driver *jobs;    /* primary */
    struct job_glue *job_glue;
    bool closing;             /* the control loop's: nothing is committed or sent any more */
    struct error start_error; /* set before started_fd is written to */
    int started_fd;           /* eventfd: serving, or failed */
    atomic_bool started;
    atomic_bool ready; /* requests are let in */
};

/* Checks the parameters that have rules among themselves, and takes what `params` holds. */
int proxy_new(struct proxy_params *params, struct proxy **out, struct error *err);
/* Begins.  The primary serves when this returns; a gateway when it has heard of the cluster, now or
 * from its last life. */
int proxy_start(struct proxy *p, struct error *err);
/* Waits until requests are served: 0; or the error that keeps it from that; or E_CANCELLED when
 * there is something to read from stop_fd. */
int proxy_await(struct proxy *p, int stop_fd, struct error *err);
/* Lets requests that are under way end, then everything else.  Also after a failed start. */
void proxy_free(struct proxy *p);

/* The proxy's route tables: NULL-terminated. */
extern const struct http_route *const proxy_routes[];

/* --- for handlers: the first line of each ---------------------------------------------------- */

/* The proxy; NULL where the request was answered already: this proxy is starting or stopping. */
struct proxy *proxy_enter(struct http_request *req);
/* True where the request is taken care of: by the primary, which is another proxy, or by
 * proxy_enter().  False: this proxy is the primary and answers. */
bool proxy_passed_to_primary(struct http_request *req);
/* Replies with the error, and logs it where it is this cluster's fault and not the client's. */
void proxy_reply_error(struct http_request *req, const struct error *err);

/* --- changing the documents ------------------------------------------------------------------ */

/* Applies the command (copied) to the present state, makes it durable, publishes it: one at a time,
 * in the order of calls.  done() comes in the control loop's thread, after this has returned; err
 * NULL: done (or it was so already), and p->state shows it.  Any thread.  E_NOT_PRIMARY at a
 * gateway. */
void proxy_commit(struct proxy *p, const struct command *cmd,
                  void (*done)(void *arg, const struct error *err), void *arg);
/* The same, waiting.  Never in the control loop's thread or an HTTP thread. */
int proxy_commit_wait(struct proxy *p, const struct command *cmd, struct error *err);
/* As proxy_commit(), but a success is told only when every active proxy knows the new state, or
 * settle_timeout has passed: what a client reads at another proxy afterwards is not older. */
void proxy_commit_settled(struct proxy *p, const struct command *cmd,
                          void (*done)(void *arg, const struct error *err), void *arg);

/* --- what happened, said by the parts -------------------------------------------------------- */

/* A new state has been put into p->state; in the control loop's thread. */
void proxy_state_changed(struct proxy *p);
/* Once; what comes later is ignored. */
void proxy_start_succeeded(struct proxy *p);
void proxy_start_failed(struct proxy *p, const struct error *err);
