/* Relays that ask again after a pause: one timer for all of them, in their loop's thread.
 *
 *     relay_waits_add(w, &wait, fn, arg)     fn(arg) after the pause, once
 *     relay_waits_free(w)                    at once, for whoever still waits
 *
 * All in the loop's thread. */
#pragma once

#include <stdint.h>

#include "io/loop.h"

struct relay_waits;

/* In the caller's memory. */
struct relay_wait {
    struct relay_wait *next;
    void (*fn)(void *arg);
    void *arg;
};

struct relay_waits *relay_waits_new(struct loop *loop, uint64_t pause_ms);
void relay_waits_free(struct relay_waits *w);
void relay_waits_add(struct relay_waits *w, struct relay_wait *wait, void (*fn)(void *arg),
                     void *arg);
