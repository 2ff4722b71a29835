/* A model of targets and their disks, with a client who writes, deletes and reads by the rules of
 * owners.h.  What was acknowledged, or ever seen, must never be gone, and what was deleted never be
 * back: a read that finds it otherwise fails the test.
 *
 * Who acts knows the map; each target knows the state that it heard of last, and has a lease or
 * not: by these it answers reads beside the one that acts (docs/design/replication.md, "Any
 * owner"). */
#pragma once

#include "cluster/command/command.h"
#include "cluster/documents/state.h"
#include "common/rng.h"

enum { TARGETS = 5, NAMES = 3, BUCKET_ID = 1 };

struct copy {
    uint64_t version; /* 0: none */
    bool dirty;       /* committed here, and not known to be settled: memory */
};

struct disk {
    bool alive; /* the process */
    bool cut;   /* alive, and nobody hears it */
    unsigned boot;
    const struct cluster_state *known; /* NULL: none, by this run */
    bool lease;
    struct copy copies[NAMES];
};

struct world {
    const struct cluster_state *s;
    struct rng rng;
    struct disk disks[TARGETS];
    uint64_t promised[NAMES]; /* the greatest version that was acknowledged or seen */
    uint64_t last;
    uint64_t writes, reads, lists, refused, repairs, moves; /* how much happened */
    uint64_t beside, beside_behind; /* reads by who does not act; and knows an older state */
    uint64_t lowered, strays, forgotten;
};

extern const char *const world_ids[TARGETS];
extern const char *const world_names[NAMES];

/* --- the map, and what a target knows of it --------------------------------------------------- */

int world_apply(struct world *w, struct command cmd);
/* The target joins; lost: without what it had.  False: it is not let in. */
bool world_join(struct world *w, size_t t, bool lost);
const struct bucket *world_bucket(const struct world *w);
size_t world_index(const struct node *n);
bool world_answers(const struct world *w, const struct node *n);
bool world_all_active_answer(const struct world *w);
void world_forget_state(struct disk *d);
/* A keepalive and its reply: a lease, for who knows the state that it was given under. */
void world_keep_alive(struct world *w, size_t t);
/* Somebody hears of the state in force, and somebody of its lease. */
void world_hear(struct world *w);

/* --- the client ------------------------------------------------------------------------------- */

/* most: of the other owners, that the acting one reaches. */
void world_write_up_to(struct world *w, size_t name, size_t most);
void world_write(struct world *w, size_t name);
void world_read(struct world *w, size_t name);
/* From every target that may answer. */
void world_read_any(struct world *w, size_t name);
/* Every name, as a list would show it. */
void world_list(struct world *w);
/* The greatest version of these nodes' copies, and of so_far. */
uint64_t world_greatest(const struct world *w, size_t name, const struct node *const *nodes,
                        size_t count, uint64_t so_far);

/* --- jobs; each does nothing where it may not ------------------------------------------------- */

void world_repair(struct world *w);
void world_trim_copies(struct world *w);
/* All tombstones are old. */
void world_sweep(struct world *w);
/* What all targets in the map have comes to the present owners; others drop it. */
void world_rebalance(struct world *w);
