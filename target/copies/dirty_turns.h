/* Names that are to be settled (dirty_worker.h), each in a turn of its own (turns.h): a name that
 * is wanted already is not taken twice, and only so many are in turns at once, so that owners who
 * stand still do not take the threads from those who write and read.  The others wait in line.
 *
 * Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

struct dirty_turns;
struct name_queue;

typedef void dirty_turns_fn(void *arg, uint64_t bucket_id, const char *name);

/* `most`: at once and in line. */
struct dirty_turns *dirty_turns_new(struct name_queue *turns, size_t at_once, size_t most,
                                    dirty_turns_fn *fn, void *arg);
void dirty_turns_free(struct dirty_turns *s); /* no turn waits or runs; NULL is fine */
DEFINE_CLEANUP(struct dirty_turns, dirty_turns_free);

/* fn() will be called, or has not come back yet.  E_OVERLOAD: neither. */
int dirty_turns_want(struct dirty_turns *s, uint64_t bucket_id, const char *name,
                     struct error *err);
