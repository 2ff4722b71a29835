/* A whole cluster in one process, from a seed: what its parts need of one another.
 *
 *   main.c      options; seeds one after the other
 *   run.c       one seed: it forms, is disturbed, is left in peace, and must converge
 *   world.c     virtual time, the queue of events, clocks of processes, the trace
 *   net.c       calls between places: delayed, lost, doubled, cut off
 *   pushes.c    texts of pushes, each made and read once
 *   store.c     the metastore in etcd: stalls, refuses, answers "unknown"
 *   proxy.c     a proxy: follower, election, how it becomes primary and ceases to be
 *   primary.c   what only the primary has: single writer, pushes, verdicts, jobs
 *   target.c    a target: membership, documents on its disks, its parts of jobs
 *   objects.c   who has which object, and what a rebalance moves
 *   client.c    who wants changes, and repeats what is in doubt
 *   trouble.c   crashes, pauses, partitions, a metastore that fails
 *   check.c     what must always hold
 *
 * What decides is the code of the daemons (cluster/, xaction/, proxy/, see README.md); what is
 * written here is what stands around it: sockets, timers, disks, etcd. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/command/command.h"
#include "cluster/documents/state.h"
#include "common/mem.h"
#include "common/rng.h"
#include "proxy/metastore/metastore.h"
#include "xaction/controller.h"

enum {
    PROXIES_MAX = 20,
    TARGETS_MAX = 199,
    NODES_MAX = 200,                   /* of one run */
    STORE = PROXIES_MAX + TARGETS_MAX, /* etcd and the client: places that are no node */
    CLIENT,
    PLACES,
    NOBODY = -1,
};

/* Times in ms, as the daemons' parameters have them by default, or shorter in proportion. */
enum {
    CALL_TIMEOUT = 2000,
    CONNECT_TIMEOUT = 500,
    KEEPALIVE_INTERVAL = 500,
    KEEPALIVE_TIMEOUT = 5000,
    SETTLE_TIMEOUT = 1000,
    LEASE_TTL = 2000,
    JOBS_INTERVAL = 200,
    CONVERGE_WITHIN = 60000,
};

enum mutant {
#define MUTANT(name, caught, what) MUTANT_##name,
#include "tests/sim/mutants.def"
#undef MUTANT
    MUTANTS
};

#define PREFIX "/dfc" /* of the keys in etcd */

struct world;
struct event;
struct call;
struct proxy_sim;
struct target_sim;
struct store_sim;
struct client_sim;
struct checker;
struct objects_sim;
struct pushes;
struct pushed;

/* A daemon, or etcd and the client, which never die. */
struct place {
    const char *name;
    bool up;
    uint64_t life;    /* grows with each start */
    uint64_t thaw_at; /* stopped until then */
    int64_t rate_ppm; /* of its monotonic clock: too fast, too slow */
    int64_t wall_off_ms;
    char boot[24];
    struct call *calls; /* that it has begun */
};

struct world {
    struct rng rng;
    uint64_t seed;
    enum mutant mutant;
    bool traced; /* print every event */
    unsigned proxies, targets;
    unsigned proxies_most, targets_most; /* that the run may have; `proxies` and `targets` exist */
    unsigned scale;                      /* 1 in a small cluster; grows with the nodes */
    bool is_shared;                      /* etcd; else the embedded metastore of p1 */
    bool calm;                           /* no new trouble */
    uint64_t now;
    uint64_t steps;
    struct event **events; /* a heap by time, then order of making */
    size_t event_count, event_room;
    uint64_t event_order;
    struct place places[PLACES];
    bool cut[PLACES][PLACES]; /* from, to */
    int apart;                /* a target that the proxies do not hear … */
    uint64_t apart_until;     /* … until then */
    unsigned loss;            /* of 1000 messages */
    struct proxy_sim *proxy[PROXIES_MAX];
    struct target_sim *target[TARGETS_MAX];
    struct store_sim *store;
    struct client_sim *client;
    struct checker *checker;
    struct objects_sim *objects;
    struct pushes *pushes;
    uint64_t leases_ended_ms; /* by hand, before their time; 0: never */
    char *ring[64];           /* the last lines of the trace */
    size_t ring_at;
    char *failure; /* the first: everything ends */
};

/* --- world.c ---------------------------------------------------------------------------------- */

void world_init(struct world *w, uint64_t seed);
void world_done(struct world *w);
/* fire(w, arg) after this time, unless the place (NOBODY: none) has died by then; drop(arg) then.
 */
void world_after(struct world *w, int place, uint64_t ms, void (*fire)(struct world *w, void *arg),
                 void *arg, void (*drop)(void *arg));
bool world_step(
    struct world *w); /* the next event; false: there is none, or something has failed */
uint64_t world_draw(struct world *w, uint64_t below);
bool world_chance(struct world *w, uint64_t one_in); /* never in the calm */
void world_note(struct world *w, int place, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void world_fail(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

uint64_t place_ms(const struct world *w, int place); /* its monotonic clock */
int64_t place_wall_ms(const struct world *w, int place);
uint64_t place_span(const struct world *w, int place, uint64_t ms); /* that much by its clock */
int place_of_name(const struct world *w, const char *id);           /* "t2"; or NOBODY */
int place_of_url(const struct world *w, const char *url);           /* "http://t2:1" */
void place_url(const struct world *w, int place, char out[static 24]);
static inline int target_place(unsigned index)
{
    return (int)(PROXIES_MAX + index);
}
static inline bool is_target(int place)
{
    return place >= PROXIES_MAX && place < STORE;
}
static inline unsigned target_index(int place)
{
    return (unsigned)place - PROXIES_MAX;
}
/* Whether a run of this size may have it. */
static inline bool place_fits(const struct world *w, int place)
{
    return place >= STORE || (is_target(place) ? target_index(place) < w->targets_most
                                               : (unsigned)place < w->proxies_most);
}

/* --- net.c ------------------------------------------------------------------------------------ */

enum request_kind {
    ASK_REGISTER,
    ASK_KEEPALIVE,
    ASK_STATE,
    PUSH_STATE,
    ASK_ORDER,
    TELL_MOVED,
    ASK_CHANGE,
    ASK_STORE,
};

/* What goes over the wire.  Texts belong to whoever lives as long as the world. */
struct request {
    enum request_kind kind;
    bool forwarded;
    int node;               /* whom it is about */
    uint64_t term, version; /* that the sender holds */
    char boot[24];
    const char *cluster; /* of a registration */
    struct pushed *text; /* of a push; taken */
    enum controller_order order;
    struct job *job;                       /* a reference */
    const char *job_id;                    /* of news */
    size_t op;                             /* of a client's change */
    const char *path;                      /* of etcd's call */
    json_t *body;                          /* a reference */
    const struct cluster_state *from, *to; /* of a change in etcd, for the checks; references */
};

struct answer {
    int code;
    uint64_t term, version;
    bool deltas;                       /* to a push */
    uint64_t lease_ms;                 /* to a keepalive */
    const struct cluster_state *state; /* a reference */
    json_t *body;                      /* a reference */
};

typedef void answer_fn(void *arg, const struct answer *a);

/* Which of a process's parts has begun a call: they end apart. */
enum channel { FOR_NODE, FOR_PRIMARY, FOR_STORE };

/* Takes the references of `req`.  done(arg) once, after return; E_NET or E_TIMEOUT where no answer
 * comes; never where the caller dies (see net_end). */
void net_call(struct world *w, int from, int to, enum channel channel, const struct request *req,
              uint64_t timeout_ms, answer_fn *done, void *arg);
/* All calls of the place in this channel end now with E_CANCELLED. */
void net_end(struct world *w, int from, enum channel channel);
/* Does what goes this way now get lost?  For what is sent without net_call. */
bool net_loses(struct world *w, int from, int to);
/* The receiver's side: who answers now, or keeps the call and answers later (it takes a reference).
 */
const struct request *call_request(const struct call *c);
int call_from(const struct call *c);
uint64_t call_life(const struct call *c); /* of whom it is from */
struct call *call_keep(struct call *c);
void call_reply(struct world *w, struct call *c, const struct answer *a); /* takes what `a` holds */
void call_reply_code(struct world *w, struct call *c, int code);
void call_drop(struct call *c);
void call_release(void *call); /* call_drop(), for world_after() */

void proxy_serve(struct world *w, unsigned index, struct call *c);
void target_serve(struct world *w, unsigned index, struct call *c);
void store_serve(struct world *w, struct call *c);

/* --- pushes.c --------------------------------------------------------------------------------- */

void pushes_new(struct world *w);
void pushes_free(struct world *w); /* after all calls */
/* A reference, for pushed_drop(): what brings `to` to a node that holds `from` (NULL: any). */
struct pushed *pushed_of(struct world *w, const struct cluster_state *from,
                         const struct cluster_state *to);
void pushed_drop(struct pushed *t);
/* As push_body_read(). */
int pushed_read(struct world *w, const struct cluster_state *now, struct pushed *text,
                struct cluster_state **out);

/* --- store.c ---------------------------------------------------------------------------------- */

enum store_mood { STORE_WELL, STORE_STALLS, STORE_UNKNOWN, STORE_FULL };

void store_new(struct world *w);
void store_free(struct world *w);
void store_set_mood(struct world *w, enum store_mood mood);
void store_end_leases(struct world *w);
uint64_t store_elected(struct world *w); /* the revision of the present election, or 0 */

/* --- proxy.c, primary.c ----------------------------------------------------------------------- */

void proxy_sim_new(struct world *w, unsigned index);
void proxy_sim_free(struct world *w, unsigned index);
void proxy_sim_start(struct world *w, unsigned index);
void proxy_sim_crash(struct world *w, unsigned index);
void proxy_sim_resign(struct world *w, unsigned index);
bool proxy_sim_is_primary(struct world *w, unsigned index);
const struct cluster_state *proxy_sim_state(struct world *w, unsigned index); /* borrowed */

/* --- target.c --------------------------------------------------------------------------------- */

void target_sim_new(struct world *w, unsigned index);
void target_sim_free(struct world *w, unsigned index);
void target_sim_start(struct world *w, unsigned index);
void target_sim_crash(struct world *w, unsigned index);
const struct cluster_state *target_sim_state(struct world *w, unsigned index); /* borrowed */
bool target_sim_has_lease(struct world *w, unsigned index);
/* What lies there of a job. */
struct target_outcome {
    bool begun;   /* the job's directory */
    bool made;    /* what it hides */
    bool visible; /* and does not hide any more */
};
struct target_outcome target_sim_outcome(struct world *w, unsigned index, const char *job_id);

/* --- objects.c -------------------------------------------------------------------------------- */

void objects_new(struct world *w);
void objects_free(struct world *w);
void objects_write(struct world *w); /* each by its owner */
/* A target's part of the job: true where nothing of others is left there. */
void objects_rebalance_begins(struct world *w, unsigned index);
bool objects_rebalance(struct world *w, unsigned index, const struct job *job);
void objects_check(struct world *w, const struct cluster_state *s);

/* --- client.c --------------------------------------------------------------------------------- */

void client_new(struct world *w);
void client_free(struct world *w);
void client_make_bucket(struct world *w); /* one that stays */
void client_start(struct world *w);
bool client_waits(const struct world *w); /* for answers, or for jobs to end */
/* The change as the primary makes it of the request; NULL: the answer is *code. */
struct change;
struct change *client_change(struct world *w, size_t op, const struct cluster_state *s,
                             int64_t wall_ms, void (*done)(void *arg, const struct error *err),
                             void *arg, int *code);
/* For the checks: a change that has become durable. */
void client_note_made(struct world *w, const struct cluster_state *from,
                      const struct cluster_state *to);
void client_check_end(struct world *w);

/* --- trouble.c -------------------------------------------------------------------------------- */

void trouble_start(struct world *w);
void trouble_end(struct world *w); /* all is healed, and everybody lives */
void world_crash(struct world *w, int place);
void world_restart(struct world *w, int place);
void world_exit(struct world *w, int place); /* by itself; it is started again */

/* --- check.c ---------------------------------------------------------------------------------- */

void checker_new(struct world *w);
void checker_free(struct world *w);
/* `to`, which this life of the place has sent, has become durable, upon `from` (NULL: the first of
 * all). */
void check_durable(struct world *w, int place, uint64_t life, const struct cluster_state *from,
                   const struct cluster_state *to);
void check_loaded(struct world *w, int place, const struct cluster_state *s);
/* A place has put `s` in force in the place of `before` (NULL: it has just started). */
void check_in_force(struct world *w, int place, const struct cluster_state *before,
                    const struct cluster_state *s);
void check_verdict(struct world *w, int primary, const char *id, bool reachable);
void check_heard(struct world *w, int primary, int place); /* a keepalive was taken */
void check_commits(struct world *w, int place, const char *job_id, bool made);
uint64_t decided_attempt(const struct world *w, const char *job_id);
void check_undoes(struct world *w, int place, const char *job_id, bool visible);
const struct cluster_state *check_head(const struct world *w); /* the last durable one; borrowed */
/* By their digests. */
bool check_same(struct world *w, const struct cluster_state *a, const struct cluster_state *b);
bool check_converged(struct world *w, char why[static 160]);
void check_end(struct world *w);

/* --- run.c ------------------------------------------------------------------------------------ */

struct run_config {
    uint64_t seed;
    uint64_t steps; /* of trouble; 0: STEPS_SMALL, and in a large cluster as many times more */
    uint64_t nodes; /* 0: up to eight */
    enum mutant mutant;
    bool traced;
};
/* What happened, added up. */
struct run_tally {
    uint64_t runs, steps, changes, terms, crashes, doubts, verdicts, finished, undone, moves;
};
/* NULL, or what failed (malloc'ed). */
char *run_seed(const struct run_config *c, struct run_tally *tally);
extern struct run_tally *run_tally_now; /* of the run that is under way */

const char *mutant_name(enum mutant m);
