/* The last pushes of the producers of a ring on one target: a push that is repeated gets the same
 * answer.  Pure; the caller locks.  So many producers are remembered: the one that has been silent
 * longest in its row goes first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ring/head.h"

enum { PRODUCERS_ROWS = 1024, PRODUCERS_WAYS = 8 };

struct producers;

struct push_done {
    char lane[RING_LANE_MAX];
    uint64_t first, count;
};

struct producers *producers_new(void);
void producers_free(struct producers *p);
/* Was the push of this number stored?  A producer that is 0 has no numbers. */
bool producers_find(const struct producers *p, uint64_t producer, uint64_t sequence,
                    struct push_done *out);
void producers_note(struct producers *p, uint64_t producer, uint64_t sequence,
                    const struct push_done *done);
/* One more sample of a push, as a log is read.  Logs may be read in any order, and again. */
void producers_see(struct producers *p, uint64_t producer, uint64_t sequence, const char *lane,
                   uint64_t ordinal);
