/* The keeper of a ring: it decides when the next generation is full.  Pure: reports and the clock
 * come from outside, and the next head goes outside.
 *
 * Its whole state is the head and the last report of each target.  A new keeper reads the head and
 * waits for reports.  Two keepers do no harm: the head is stored by a conditional PUT, and the one
 * that loses reads it anew.
 *
 *   ring_keeper_load()     the head that is stored, or none yet
 *   ring_keeper_report()   what the lanes of one target have, all of them
 *   ring_keeper_plan()     the next head, if there is one  ──▶ PUT If-Match
 *   ring_keeper_stored()   it was stored; else ring_keeper_unload(), and load again
 *   ring_keeper_answer()   what a lane needs no longer
 *
 * A sample counts if its target has reported within `fresh_ms`, so that the new generation can be
 * read when it appears.  An open lane's count only grows, whatever order reports arrive in; that of
 * a closed lane is final.
 *
 * A closed lane without files is *drained*.  The head forgets it RING_FORGET_MS after the first
 * report that says so.  That is longer than a report is under way, and counts then with a keeper
 * that was deposed and comes back (`fresh_ms`, three minutes at most): it would else bring the
 * lane's samples back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/head.h"

enum { RING_FORGET_MS = 240000 };

struct ring_keeper;

struct ring_report {
    char lane[RING_LANE_MAX];
    uint64_t first, count; /* ordinals [first, count) are in its files, and acknowledged */
    bool closed;           /* nothing is appended any more */
    bool drained;          /* closed, and it has no files */
    uint64_t drop_to;      /* it has no room: samples before may be dropped; 0: it has */
    size_t holes_count;
    struct ring_range holes[RING_HOLES_MAX]; /* of these, what is damaged; ascending */
};

struct ring_rules {
    uint64_t cap; /* samples of a generation */
    unsigned keep;
    uint64_t fresh_ms;
    bool consumed; /* a generation stays until a group has acknowledged it, also without groups */
};

struct ring_keeper *ring_keeper_new(void);
void ring_keeper_free(struct ring_keeper *k);
/* NULL: there is none, and the first one is to be made.  Copied. */
void ring_keeper_load(struct ring_keeper *k, const struct ring_head *head);
void ring_keeper_unload(struct ring_keeper *k); /* reports stay */
bool ring_keeper_is_loaded(const struct ring_keeper *k);
const struct ring_head *ring_keeper_head(const struct ring_keeper *k); /* loaded */

/* All lanes of a target.  A lane that it named before and does not name now is away: its samples do
 * not count. */
void ring_keeper_report(struct ring_keeper *k, const char *node, const struct ring_report *reports,
                        size_t count, uint64_t now_ms);
/* Samples that no generation has and that can be read now; loaded. */
uint64_t ring_keeper_fill(const struct ring_keeper *k, const struct ring_rules *r, uint64_t now_ms);

enum ring_wish {
    RING_WHEN_FULL, /* a generation of exactly cap samples, unless the ring is paused; else what
                     * lanes have no room for is dropped, if their reports ask for it */
    RING_SWAP,      /* also of fewer, but not of none; not of more than cap */
    RING_PAUSE,     /* only RING_SWAP makes generations … */
    RING_RESUME,    /* … until then */
    RING_GROUP,     /* what ring_keeper_group() is for; ring_keeper_plan() does nothing */
    RING_CLEAR,     /* everything goes, also what the last reports of away targets have */
};
/* What a group of readers says. */
struct ring_group_call {
    char name[RING_GROUP_MAX];
    uint64_t done;     /* it has consumed this generation, and all before */
    uint64_t lease_ms; /* how long it may be silent from now on */
    bool leaves;
};
enum ring_group_reply {
    RING_GROUP_KNOWN,  /* nothing is to be stored: its lease begins anew */
    RING_GROUP_STORES, /* *next is to be stored: it joins, leaves, or has acknowledged more */
    RING_GROUP_AHEAD,  /* it acknowledges what is not there */
    RING_GROUP_MANY,   /* there are RING_GROUPS_MAX */
};
/* While the head has a group, the next generation waits until each group has acknowledged the
 * current one, or has been silent for longer than its lease.  Leases are in this keeper's memory:
 * a new keeper gives each group of the head a whole one.  A group that calls twice in each lease is
 * never passed over.  RING_SWAP does not wait.  Loaded. */
enum ring_group_reply ring_keeper_group(struct ring_keeper *k, const struct ring_group_call *call,
                                        uint64_t now_ms, struct ring_head *next);
/* Of a call, before it is served: the head does not have the group, or is more than one generation
 * beyond what the group has acknowledged.  Generations may have passed it over; a call that is
 * repeated after a lost reply says so, too.  Loaded. */
bool ring_keeper_joins(const struct ring_keeper *k, const struct ring_group_call *call);
/* How many generations one head adds at most, if so many are full.  Each generation is in two heads
 * at least, as if each had a head of its own, with `keep` 1 or more. */
unsigned ring_keeper_seals_max(const struct ring_rules *r);
/* False: nothing is to be stored.  Loaded. */
bool ring_keeper_plan(struct ring_keeper *k, const struct ring_rules *r, enum ring_wish wish,
                      uint64_t now_ms, uint64_t wall_ms, struct ring_head *next);
/* Takes over what `next` holds. */
void ring_keeper_stored(struct ring_keeper *k, struct ring_head *next);

struct ring_answer {
    uint64_t release; /* no kept generation needs the ordinals before */
    uint64_t sealed,
        taken;   /* these of no kept generation, and no later one, too: [sealed, taken) */
    bool forget; /* the lane was drained, and the head does not have it */
};
/* By the head that is stored; not loaded: nothing is released. */
struct ring_answer ring_keeper_answer(const struct ring_keeper *k, const struct ring_report *r);

/* --- for a status ----------------------------------------------------------------------------- */
struct ring_lane_seen {
    const struct ring_report *report;
    uint64_t seen_ms;
};
size_t ring_keeper_lanes(const struct ring_keeper *k);
void ring_keeper_lane(const struct ring_keeper *k, size_t i, struct ring_lane_seen *out);
