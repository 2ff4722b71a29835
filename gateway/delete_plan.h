/* In which order the keys of a DeleteObjects are called, so that a target that does not answer
 * holds up its own keys alone.  Pure.
 *
 * Each target has a queue of its keys.  The next call is for the target with the fewest calls: so
 * one that does not answer gets its share of DELETE_AT_ONCE while keys of others wait, and no more.
 * A target that has not answered one call is silent: it gets no further one.
 *
 *     delete_plan_add(), for each key  ──▶  delete_plan_next()  ──▶  delete_plan_ended()
 *                                                  ▲                        │
 *                                                  └────────────────────────┘ */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"

enum { DELETE_AT_ONCE = 16 }; /* calls */

struct delete_plan;

/* Of the arena, for `keys` keys. */
struct delete_plan *delete_plan_new(struct arena *arena, size_t keys);
/* `target`: the id of the one that acts for the key; "": not known.  It stays the caller's. */
void delete_plan_add(struct delete_plan *p, size_t key, const char *target);
/* False: a call must end first, or none is left.  The key takes a turn until it has ended. */
bool delete_plan_next(struct delete_plan *p, size_t *key);
void delete_plan_ended(struct delete_plan *p, size_t key);
bool delete_plan_is_over(const struct delete_plan *p);
/* It has not answered. */
void delete_plan_note_silent(struct delete_plan *p, const char *target);
bool delete_plan_is_silent(const struct delete_plan *p, const char *target);
