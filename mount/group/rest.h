/* A peer that fails rests, so that its failures cost little: pure.
 *
 * After a failure it is not asked for 1 s, after each further one for twice as long, up to 10 s.
 * When a rest is over one request tries, and the others go on as if the peer rested still. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define REST_FIRST_MS 1000
#define REST_MOST_MS 10000

struct rest {
    unsigned failures; /* one after the other */
    uint64_t until_ms;
};

/* True: ask, and note how that ended. */
bool rest_may_ask(struct rest *r, uint64_t now_ms);
void rest_note(struct rest *r, bool good, uint64_t now_ms);
