/* A large object that comes from its backend in ranges, several at once: a backend that gives each
 * connection so much gives several of them more.
 *
 *   the whole, as asked for ─▶ [first range] ─ left ─┐
 *   asked for beside it     ─▶ [2nd] [3rd] [4th] …  ─┴▶ taken one after the other, each from its
 * pipe
 *
 * So the object grows from its beginning, in one file, and readers follow as they do otherwise.
 * Each range is of the version whose head came first (If-Match), and has a pipe that it fits into:
 * no connection waits for another one.  How many there are is the parameter `cold_ranges`, with 1
 * (the default) every object comes in one piece; what they may take of memory, all together, is
 * `cold_range_memory`: an object for which nothing is left comes in one piece, too.  Before a
 * backend that is overloaded each waits like any other question (gates.h).
 *
 * A fetcher's, who owns it; questions are asked by threads of their own. */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct bpipe;
struct cold_ranges;
struct fetch;

/* NULL: it comes in one piece.  Else *end is where the first range ends, which is to be read of the
 * whole. */
struct cold_ranges *cold_ranges_begin(struct fetch *f, uint64_t *end);
/* Blocks until the next range comes: the caller's pipe, and where it ends.  An error of the
 * backend's, after all tries, or of one that knows no ranges. */
int cold_ranges_next(struct cold_ranges *r, struct bpipe **pipe, uint64_t *end, struct error *err);
/* Leaves what is still to come; NULL is fine. */
void cold_ranges_end(struct cold_ranges *r);
