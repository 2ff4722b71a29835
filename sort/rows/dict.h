/* The shards that a table's rows speak of: name, place in the request, the target that holds it and
 * its number there.  Entries are in the order of (place, name), so that an entry's number compares
 * as its place does; merging dictionaries keeps that, and says how each one's numbers change.
 *
 * A dictionary is held in memory whole: some 100 bytes a shard, at most SORT_SHARDS_MAX shards. */
#pragma once

#include <stdint.h>

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "sort/base/codec.h"

struct dict_entry {
    const char *name;
    uint64_t place;
    uint32_t owner;
    uint32_t local; /* its number at the owner */
};

struct dict;

struct dict *dict_new(void);
void dict_free(struct dict *d);
DEFINE_CLEANUP(struct dict, dict_free);
/* In any order; copies the name.  dict_sort() follows the last one. */
void dict_add(struct dict *d, const struct dict_entry *e);
/* E_CORRUPT where a (place, name) comes twice: two targets took the same shard. */
int dict_sort(struct dict *d, struct error *err);
uint32_t dict_count(const struct dict *d);
const struct dict_entry *dict_entry(const struct dict *d, uint32_t number);
/* One dictionary of all; maps[i] (malloc'ed) is dicts[i]'s numbers in it. */
int dict_merge(const struct dict *const *dicts, size_t count, struct dict **out, uint32_t **maps,
               struct error *err);

/* In a stream: the count, then place, owner, local number, name (length, bytes) of each. */
int dict_write(const struct dict *d, struct encoder *e, struct error *err);
int dict_read(struct decoder *d, unsigned participants, struct dict **out, struct error *err);
