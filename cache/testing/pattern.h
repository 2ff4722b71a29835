/* Bytes for tests: they tell their place and whose they are. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PATTERN_PERIOD 65521u /* a prime: bytes that are a power of two away differ */

static char pattern_bytes[PATTERN_PERIOD];

__attribute__((constructor)) static void pattern_make(void)
{
    for (uint32_t i = 0; i < PATTERN_PERIOD; i++)
        pattern_bytes[i] = (char)(i * 2654435761u >> 13);
}

/* The run of bytes at this place, and how long it is: `size` at most. */
static const char *pattern_run(unsigned char whose, uint64_t at, uint64_t size, size_t *run)
{
    uint64_t from = (at + whose * 251u) % PATTERN_PERIOD;
    *run = (size_t)(size < PATTERN_PERIOD - from ? size : PATTERN_PERIOD - from);
    return pattern_bytes + from;
}

static void pattern_fill(char *to, unsigned char whose, uint64_t at, uint64_t size)
{
    for (size_t run; size > 0; to += run, at += run, size -= run) {
        const char *bytes = pattern_run(whose, at, size, &run);
        memcpy(to, bytes, run);
    }
}

static bool pattern_matches(const char *data, unsigned char whose, uint64_t at, uint64_t size)
{
    for (size_t run; size > 0; data += run, at += run, size -= run) {
        const char *bytes = pattern_run(whose, at, size, &run);
        if (memcmp(data, bytes, run) != 0)
            return false;
    }
    return true;
}
