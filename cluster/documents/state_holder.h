/* The holder of the current snapshot in a daemon: readers take a reference without waiting for a
 * writer's work; the writer swaps.
 *
 * A snapshot is whole if a primary has made or given it in this run.  What was read from a disk, or
 * got from a node that is no primary, may lack fields that an earlier release did not know; it is
 * hearsay. */
#pragma once

#include <stdbool.h>

struct cluster_state;
struct state_holder;
/* Takes the reference.  `initial` is hearsay. */
struct state_holder *state_holder_new(struct cluster_state *initial);
void state_holder_free(struct state_holder *h);
const struct cluster_state *state_current(struct state_holder *h); /* a reference; unref it */
const struct cluster_state *state_current_whole(struct state_holder *h,
                                                bool *whole); /* and is it? */
/* Swaps if `s` is greater than the current one (takes a reference then). */
bool state_advance(struct state_holder *h, const struct cluster_state *s);
bool state_advance_hearsay(struct state_holder *h, const struct cluster_state *s);
