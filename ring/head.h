/* The head of a ring: the document that says which samples of which lanes are which generation.
 * It is one object of the bucket, RING_HEAD_OBJECT, as JSON.  Pure.
 *
 *   {"format": 1, "generation": 42, "sealed_ms": …, "samples_total": 4200,
 *    "dropped_total": 17, "paused": true,                           absent: 0, false
 *    "consumed": 41,                                                absent: 0
 *    "groups": [{"group": "a", "done": 41, "lease_ms": 30000}, …],  absent: none
 *    "lanes": [{"lane": "t1.5f0c…", "taken": 925}, …],
 *    "generations": [{"generation": 41, "sealed_ms": …, "cuts": [{"lane", "from", "to"}, …]}, …]}
 *
 * A lane is named by its target and a number.  `taken` is its first ordinal that no generation has
 * had.  A generation is ranges of some lanes, several of one that has holes; its index i is the
 * i-th sample of these ranges, in their order.  The last generation is the one to read.  After
 * "clear" there is none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"

#define RING_HEAD_OBJECT "head"

enum {
    RING_LANE_MAX = 96,
    RING_HEAD_BYTES_MAX = 8 << 20,
    RING_KEEP_MAX = 16, /* generations beside the current one */
    RING_LANES_MAX = 10000,
    RING_CUTS_MAX = 20000, /* of a generation */
    RING_GROUP_MAX = 64,   /* bytes of a group's name, with its NUL */
    RING_GROUPS_MAX = 64,
    RING_HOLES_MAX = 16, /* of a lane that a keeper knows at once */
};

struct ring_range {
    uint64_t from, to;
};
struct ring_cut {
    char lane[RING_LANE_MAX];
    uint64_t from, to;
};
struct ring_generation {
    uint64_t number, sealed_ms, samples;
    size_t count;
    struct ring_cut *cuts; /* none is empty */
};
struct ring_taken {
    char lane[RING_LANE_MAX];
    uint64_t taken;
};
/* Readers that consume each generation together. */
struct ring_group {
    char name[RING_GROUP_MAX];
    uint64_t done;     /* the last generation that it has acknowledged */
    uint64_t lease_ms; /* it is forgotten if it is silent for longer */
};
struct ring_head {
    uint64_t generation;                   /* number of the last one; 0: there was none */
    uint64_t samples_total, dropped_total; /* that were in generations; that came into none */
    uint64_t consumed;                     /* the last generation that a group has acknowledged */
    bool is_paused;                        /* full generations wait */
    size_t lanes_count, generations_count, groups_count;
    struct ring_group *groups;           /* sorted by name */
    struct ring_taken *lanes;            /* sorted by name */
    struct ring_generation *generations; /* ascending */
};

void ring_head_done(struct ring_head *h);
#define _cleanup_ring_head_ _cleanup_(ring_head_done)
void ring_head_copy(const struct ring_head *from, struct ring_head *to);
/* E_CORRUPT says what is wrong.  What is taken obeys all that is said above. */
int ring_head_parse(const char *text, size_t len, struct ring_head *out, struct error *err);
void ring_head_print(const struct ring_head *h, struct buf *out);

/* The one with this number, or NULL. */
const struct ring_generation *ring_head_generation(const struct ring_head *h, uint64_t number);
/* Where the sample with this index is.  False: the generation has no such index. */
bool ring_generation_find(const struct ring_generation *g, uint64_t index, const char **lane,
                          uint64_t *ordinal);
/* A lane's taken ordinal; false: the head does not have the lane. */
bool ring_head_taken(const struct ring_head *h, const char *lane, uint64_t *taken);
/* The generation that has the ordinal, and how many from it on: false: none that is kept. */
bool ring_head_has(const struct ring_head *h, const char *lane, uint64_t ordinal,
                   uint64_t *generation, uint64_t *count);
/* The first ordinal of the lane that a kept generation has, or else what is taken: no reader of a
 * kept generation needs those before. */
uint64_t ring_head_release(const struct ring_head *h, const char *lane);
/* Where the last cut of the lane ends; else what is taken.  Ordinals from there to `taken` are of
 * no kept generation: they were dropped. */
uint64_t ring_head_sealed(const struct ring_head *h, const char *lane);
/* A full generation is held back: the ring is paused, or a group has not acknowledged the current
 * one.  consumed: so is one behind a generation that no group has acknowledged. */
bool ring_head_is_held(const struct ring_head *h, bool consumed);
/* The target of a lane: its name up to the last dot. */
bool ring_lane_node(const char *lane, char node[static RING_LANE_MAX]);

/* --- the next one ----------------------------------------------------------------------------- */
struct ring_have {
    char lane[RING_LANE_MAX];
    uint64_t from, to; /* samples that no generation has */
    size_t holes_count;
    struct ring_range holes[RING_HOLES_MAX]; /* of these, what cannot be read; ascending */
};
uint64_t ring_have_samples(const struct ring_have *have); /* without holes */
/* How many samples of each lane make a generation of exactly `want`: in proportion to what the lane
 * has, by the largest remainder.  want is at most the sum; take[i] at most ring_have_samples(). */
void ring_cut_take(const struct ring_have *have, size_t count, uint64_t want, uint64_t *take);
/* `next` becomes `h` with another generation of `want` samples; of the older ones `keep` stay. */
void ring_head_seal(const struct ring_head *h, const struct ring_have *have, size_t count,
                    uint64_t want, unsigned keep, uint64_t now_ms, struct ring_head *next);
/* The lane's samples before `to` come into no generation. */
void ring_head_drop(struct ring_head *next, const struct ring_have *have, uint64_t to);
/* `next` becomes `h` without generations, and all of `have` is taken. */
void ring_head_clear(const struct ring_head *h, const struct ring_have *have, size_t count,
                     struct ring_head *next);
/* NULL: the head does not have it. */
const struct ring_group *ring_head_group(const struct ring_head *h, const char *name);
/* Adds or replaces it; what it has done is consumed.  False: there are RING_GROUPS_MAX. */
bool ring_head_set_group(struct ring_head *h, const struct ring_group *group);
void ring_head_leave_group(struct ring_head *h, const char *name);
/* A lane that has nothing left is forgotten. */
void ring_head_forget(struct ring_head *h, const char *lane);
