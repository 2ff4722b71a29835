/* Random numbers: a seeded, repeatable generator (xoshiro256**) for everything that tests must be
 * able to repeat, and the kernel's for ids and salts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct rng {
    uint64_t s[4];
};

void rng_seed(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t bound); /* uniform in [0, bound); bound > 0 */

void random_bytes(void *out, size_t len); /* getrandom(2) */
/* "srt-" + 10 characters of [0-9a-z]; out needs strlen(prefix) + 11 bytes. */
void random_id(const char *prefix, char *out);
