/* A hash of an address for tables of this room. */
#pragma once

#include <stdint.h>

/* FNV-1a, mixed with `seed`. */
static inline uint32_t direct_hash(uint32_t seed, const char *authority)
{
    uint32_t hash = 2166136261u ^ seed;
    for (const char *at = authority; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    return hash;
}
