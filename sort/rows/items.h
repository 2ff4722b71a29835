/* Byte strings of any length, collected in any order and read in order: what grouping sorts outside
 * of memory.  A rowset does the sorting; what is too long for a row's name stands in a blob. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "sort/base/env.h"

struct items;

/* Ordered by (key, rank); the memory is that of the rowset. */
int items_new(const struct sort_env *env, uint64_t memory, struct items **out, struct error *err);
void items_free(struct items *s);
DEFINE_CLEANUP(struct items, items_free);
/* A key has no NUL, and at most SORT_NAME_MAX bytes; no two items have the same (key, rank). */
int items_add(struct items *s, const char *key, size_t key_len, uint64_t rank,
              const struct buf *payload, struct error *err);
uint64_t items_count(const struct items *s);
uint64_t items_spilled(const struct items *s);

struct item {
    const char *key; /* key and payload live until the next call */
    size_t key_len;
    uint64_t rank;
    const unsigned char *payload;
    size_t len;
};

int items_open(struct items *s, struct error *err);                   /* ends the adding */
int items_next(struct items *s, struct item *out, struct error *err); /* 1, 0, < 0 */
