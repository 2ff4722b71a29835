/* A volume and many clients, from a seed.
 *
 * Each client is a thread, and one runs at a time.  Before each call of the engine the seed decides
 * who goes on, how far the clock moves, and what becomes of the call: commits lose their reply, are
 * not made, or are made later; clients crash, and start anew or take over their session, or are
 * silent until they are given up.
 *
 * A change takes effect with its commit: there the model does the same operation, and both results
 * must be equal.  What changes nothing must return what the model would at some moment between its
 * begin and its end. */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "common/rng.h"
#include "mount/volume/calls.h"
#include "mount/volume/testing/model.h"

enum {
    SIM_CLIENTS = 4,
    SIM_OPEN = 4,
    SIM_CHUNK = 32,
    SIM_SESSION_MS = 60000,
    SIM_GRACE_MS = 150000
};

/* One call of a client. */
struct attempt {
    struct attempt *next;
    struct op op;
    bool running;
    bool in_doubt;              /* it returned EIO: its commit may still be on its way */
    bool settled;               /* … but no commit may take effect any more */
    unsigned commits;           /* that took effect */
    uint64_t built;             /* inode of a clone */
    struct op_result committed; /* by the model */
    struct op_result *may;      /* what a read may return */
    size_t may_count, may_room;
};

struct client {
    struct meta meta; /* what the volume calls */
    struct world *w;
    unsigned number;
    pthread_t thread;
    sem_t turn;
    bool done;
    bool crashed;
    struct volume *v;
    struct attempt *now; /* NULL: between calls */
    bool troubled;       /* a call of the engine failed during the attempt */
    unsigned calls_left;
    int64_t beat_ms;
    int64_t silent_until_ms;
    /* A process that takes over has the memory as it was at the crash. */
    struct volume_memory memory, at_crash;
    uint64_t call_id;
    struct attempt *again; /* the call comes again; NULL: none */
    uint64_t again_id;
    uint64_t open[SIM_OPEN];
    size_t open_count;
};

/* A commit that is made later. */
struct delayed {
    struct delayed *next;
    struct client *client;
    struct attempt *attempt;
    struct meta_step *steps;
    size_t count;
    struct arena *arena;
};

struct sim_options {
    uint64_t seed;
    const char *mutant; /* name, or NULL */
    bool verbose;
};

struct world {
    struct sim_options options;
    struct rng rng;
    struct meta *real;
    struct model model;
    struct client clients[SIM_CLIENTS];
    struct attempt *attempts;
    struct delayed *delayed;
    sem_t end;
    int64_t now_ms;
    unsigned doubt, crash, failure; /* of 1000 */
    bool calm;                      /* no faults any more */
    int64_t lease_session, lease_until_ms;
    uint64_t *garbage; /* slices that were queued for deletion */
    size_t garbage_count, garbage_room;
    char failed[256]; /* the first violation */
    uint64_t commits, conflicts, doubts, crashes, over, takeovers;
};

/* The first one counts. */
void sim_fail(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline bool sim_failed(const struct world *w)
{
    return w->failed[0] != '\0';
}

/* sim_engine.c: a client's engine, and what its calls mean for the model. */
extern const struct meta_ops sim_engine_ops;
void sim_flush_delayed(struct world *w); /* makes them, or forgets them */

/* sim_client.c */
void *sim_client(void *client);
void sim_yield(struct client *c); /* another one may go on */
void sim_crash(struct client *c);
void sim_note(struct attempt *a, const struct op_result *r);
struct op sim_choose(struct client *c);
int64_t sim_clock_ns(void *client);
void sim_pause_ms(void *client, uint64_t ms);

/* sim_check.c: the engine has what the model has, and nothing else. */
void sim_check(struct world *w);

/* sim.c: true: nothing was found.  The reason is in w->failed. */
bool sim_run(struct world *w, const struct sim_options *options);
