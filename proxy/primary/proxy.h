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
 * One proxy is the primary; it alone commits.  The others follow: they answer what a snapshot
 * can answer and pass the rest on to the primary.  With the embedded metastore the primary is the
 * one that was started without --join, for ever; with one that is shared it is elected, and what it
 * has as such (primary.c) comes and goes (candidate.c). */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "access/exposure.h"
#include "cluster/command/command.h"
#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "io/loop.h"
#include "net/client/client.h"
#include "net/http/server.h"
#include "proxy/metastore/metastore.h"
#include "proxy/primary/health_verdict.h"
#include "proxy/primary/params.h"
#include "proxy/primary/read_choice.h"

struct auth;
struct tls;
struct backend_endpoints;
struct cache_groups;
struct candidate;
struct committer;
struct daemon_sources;
struct follower;
struct events;
struct exposure_gate;
struct direct_reader;
struct gateway;
struct guard;
struct witness;
struct job_glue;
struct job_stalls;
struct login;
struct password_tries;
struct members;
struct overtaken;
struct pool;
struct publisher;
struct stat_samples;
struct relay_waits;
struct summaries;
struct refused_nodes;

struct proxy {
    struct proxy_params params;
    struct daemon_sources *sources;      /* of `params` */
    const char *id;                      /* params.id */
    char boot[16];                       /* id of this run */
    struct backend_endpoints *endpoints; /* params.backend_endpoints */
    struct visitor_rules *visitors;      /* params.allowed_hosts, allowed_origins */
    enum exposure exposure;              /* params.public_auth, anonymous */
    bool is_shared;                      /* the metastore: the primary is elected */
    int lock_fd;                         /* of params.dir */
    char *state_path;            /* of one that is or may be a follower: the last state it saw */
    struct metastore *metastore; /* NULL at a follower of an embedded one */
    struct committer *committer;
    struct pool *overhaul;  /* one thread: work on the documents as a whole, which waits */
    struct pool *push_pool; /* one thread: the texts of pushes, made and read */
    struct pool *passwords; /* two threads: a hash takes 32 MiB */
    struct cache_groups *cache_groups;   /* whose members have reported to this primary */
    struct refused_nodes *refused_nodes; /* nodes that this primary has refused, for recovery */
    struct events *events;               /* what happened of late */
    struct stat_samples *samples;        /* how fast the targets are, as this primary has heard */
    struct state_holder *state;
    struct auth *auth;          /* proof of membership, asked for and given */
    struct tls *tls;            /* of the public listener; NULL: plain HTTP */
    struct witness *witness;    /* NULL: no audit log */
    struct exposure_gate *gate; /* of the public listener, without EXPOSURE_AUTH; else NULL */
    struct guard *guard;        /* of the public listener, with EXPOSURE_AUTH; else NULL … */
    struct login *login;        /* … and so are these */
    struct password_tries *password_tries;
    struct loop *loop;          /* the control loop */
    struct http_client *client; /* in it */
    struct loop *data_loop;
    struct http_client *data_client;
    struct overtaken *overtaken; /* of its calls to the primary, when there is another */
    struct loop *list_loop;
    struct http_client *list_client;
    struct relay_waits *relay_waits; /* in the data loop */
    struct read_choice read_choice;
    struct summaries *summaries; /* of buckets, for AIStore's SDK */
    pthread_mutex_t verdict_lock;
    struct health_verdict verdict; /* for /metrics */
    struct job_stalls *stalls;     /* for /metrics; under the same lock … */
    uint64_t shown_buckets;        /* … as the version of the bmd whose buckets it names */
    atomic_uint relays;            /* under way */
    atomic_uint reads_waiting;     /* those of them that wait for an owner */
    atomic_uint lists;
    atomic_ullong complained_ms;  /* of a node that is ahead of this primary, last */
    struct gateway *gateway;      /* for S3 requests … */
    struct direct_reader *direct; /* … which read at targets */
    struct http_server *public_server;
    struct http_server *s3_server;    /* NULL: none */
    struct http_server *admin_server; /* NULL: none */
    struct http_server *control_server;
    char *public_url;
    char *s3_url;    /* NULL: no S3 listener */
    char *admin_url; /* NULL: no admin listener */
    char *control_url;
    struct follower *follower;   /* of one that is or may be a follower */
    struct candidate *candidate; /* is_shared */
    pthread_rwlock_t
        role_lock; /* of what follows, which is NULL but at the primary; see primary.h */
    struct http_client *primary_client; /* in the control loop */
    struct publisher *publisher;
    struct members *members;
    struct job_glue *job_glue;
    atomic_bool is_primary;   /* it has these parts; see proxy_is_primary() */
    bool root_is_reset;       /* in this process; the thread's that begins as primary, see root.h */
    bool closing;             /* the control loop's: nothing is committed or sent any more */
    bool fenced;              /* the control loop's: the documents are being moved */
    atomic_bool moved;        /* they have been: see proxy/metastore/moved.h */
    struct error start_error; /* set before started_fd is written to */
    int started_fd;           /* eventfd: serving, or failed */
    atomic_bool heard;        /* in this run, of a primary: what it does not know is not there */
    atomic_bool started;
    atomic_bool ready;      /* requests are let in */
    atomic_bool leaving;    /* it stops, and is not to be sent anything new */
    atomic_bool hands_over; /* … and begins nothing more as the primary: another will be elected */
    atomic_uint primary_calls; /* requests that it answers as the primary, until they are over */
};

/* Checks the parameters that have rules among themselves, and takes what `params` holds. */
int proxy_new(struct proxy_params *params, struct proxy **out, struct error *err);
/* Begins.  The primary of an embedded metastore serves when this returns; another one when it has
 * heard of the cluster, now or from its last life, or is elected. */
int proxy_start(struct proxy *p, struct error *err);
/* Waits until requests are served: 0; or the error that keeps it from that; or E_CANCELLED when
 * there is something to read from stop_fd. */
int proxy_await(struct proxy *p, int stop_fd, struct error *err);
/* Lets requests that are under way end, then everything else.  Also after a failed start. */
void proxy_free(struct proxy *p);

/* The proxy's route tables: NULL-terminated. */
extern const struct http_route *const proxy_routes[];

/* --- for handlers: the first line of each ---------------------------------------------------- */

/* The proxy; NULL where the request was answered already: this proxy is starting, or is the primary
 * and stopping. */
struct proxy *proxy_enter(struct http_request *req);
/* The same for calls of objects, which need nothing but documents: they are answered also while it
 * starts or stops, for who has connected then has nobody else to ask. */
struct proxy *proxy_enter_objects(struct http_request *req);
/* True where the request is taken care of: by the primary, which is another proxy, or by
 * proxy_enter().  False: this proxy is the primary and answers. */
bool proxy_passed_to_primary(struct http_request *req);
/* A bucket is not in the present state: E_BUCKET_NOT_FOUND; E_NOT_READY from a follower whose state
 * is still that of its last life. */
int proxy_no_bucket(struct proxy *p, const char *name, struct error *err);
/* Is this proxy the primary, at this moment?  Not when its lease is over, by its own clock, though
 * it has not taken note of that yet.  Any thread. */
bool proxy_is_primary(struct proxy *p);
/* May it become the primary, or is it? */
bool proxy_is_electable(const struct proxy *p);
/* Who is, if it is another one: true, and *out (metastore_primary_done). */
bool proxy_find_primary(struct proxy *p, struct metastore_primary *out);
/* The proxy that answers as the primary, which may be this one: 0, and *out
 * (metastore_primary_done).  E_NOT_PRIMARY; with *comes another one is being elected: ask again. */
int proxy_seek_primary(struct proxy *p, struct metastore_primary *out, bool *comes,
                       struct error *err);
/* Replies with the error, and logs it where it is this cluster's fault and not the client's. */
void proxy_reply_error(struct http_request *req, const struct error *err);
/* 200 and a document, on the public listener without the queries of its URLs (json_mask_queries()).
 */
void proxy_reply_masked(struct http_request *req, const json_t *doc);

/* --- changing the documents ------------------------------------------------------------------ */

/* Applies the command (copied) to the present state, makes it durable, publishes it: one at a time,
 * in the order of calls.  done() comes in the control loop's thread, after this has returned; err
 * NULL: done (or it was so already), and p->state shows it.  Any thread.  E_NOT_PRIMARY at a
 * follower. */
void proxy_commit(struct proxy *p, const struct command *cmd,
                  void (*done)(void *arg, const struct error *err), void *arg);
/* The same, waiting.  Never in a loop's thread or an HTTP thread. */
int proxy_commit_wait(struct proxy *p, const struct command *cmd, struct error *err);
/* As proxy_commit(), but a success is told only when every active proxy knows the new state, or
 * settle_timeout has passed: what a client reads at another proxy afterwards is not older.  A new
 * bucket is known to every active target, too. */
void proxy_commit_settled(struct proxy *p, const struct command *cmd,
                          void (*done)(void *arg, const struct error *err), void *arg);

/* Commits the command that begins a term upon `base`, of which the metastore has nothing yet where
 * is_first; waits.  For a proxy that is not the primary yet. */
int proxy_commit_term(struct proxy *p, const struct command *cmd, const struct cluster_state *base,
                      bool is_first, struct error *err);
/* Waits until all commits that were begun have ended. */
void proxy_commit_barrier(struct proxy *p);
int committer_new(struct proxy *p, struct committer **out, struct error *err);
void committer_free(struct committer *c); /* after the control loop */

/* --- what happened, said by the parts -------------------------------------------------------- */

/* A new state has been put into p->state; in the control loop's thread. */
void proxy_state_changed(struct proxy *p);
/* Once; what comes later is ignored. */
void proxy_start_succeeded(struct proxy *p);
void proxy_start_failed(struct proxy *p, const struct error *err);

enum { PROXY_CONNECTIONS_PER_HOST = 64 };

/* A client for calls from this loop, as the parameters say. */
int proxy_client_new(struct proxy *p, struct loop *loop, unsigned connections_per_host_max,
                     struct http_client **out, struct error *err);
