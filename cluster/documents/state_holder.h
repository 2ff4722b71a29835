/* The holder of the current snapshot in a daemon: readers take a reference without waiting for a
 * writer's work; the writer swaps. */
#pragma once

#include <stdbool.h>

struct cluster_state;
struct state_holder;
struct state_holder *state_holder_new(struct cluster_state *initial); /* takes the reference */
void state_holder_free(struct state_holder *h);
const struct cluster_state *state_current(struct state_holder *h); /* a reference; unref it */
/* Swaps if `s` is greater than the current one (takes a reference then). */
bool state_advance(struct state_holder *h, const struct cluster_state *s);
