/* A set of digests (XXH3-128), 16 bytes each: of what a task has built in earlier attempts, of
 * names. Several threads may add at once; nobody adds while others ask. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <xxhash.h>

#include "common/cleanup.h"

struct digests;

struct digests *digests_new(void);
void digests_free(struct digests *d);
DEFINE_CLEANUP(struct digests, digests_free);
void digests_add(struct digests *d, XXH128_hash_t digest);
bool digests_have(struct digests *d, XXH128_hash_t digest);
