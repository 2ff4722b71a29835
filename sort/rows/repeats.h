/* Record names that meet twice in one output shard.
 *
 * A set of 128-bit hashes of names, emptied for each shard: 16 bytes a name, at most `max` names.
 * Beyond that it does not know: the caller says so to the user (who can raise the memory limit or
 * switch the search off) instead of guessing. */
#pragma once

#include <stddef.h>

#include "common/cleanup.h"

enum repeats_answer { REPEATS_NEW, REPEATS_SEEN, REPEATS_FULL };

struct repeats;

struct repeats *repeats_new(size_t max_names);
void repeats_free(struct repeats *r);
DEFINE_CLEANUP(struct repeats, repeats_free);
enum repeats_answer repeats_add(struct repeats *r, const char *name, size_t len);
void repeats_clear(struct repeats *r);
