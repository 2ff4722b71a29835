/* A plog_store in memory, of which calls can fail. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/rng.h"
#include "plog/store.h"

struct memory_object {
    char name[PLOG_NAME_MAX];
    struct buf body;
    uint64_t version;
    bool is_there;
};

struct memory_store {
    struct rng rng;
    uint64_t clock_ms, calls, versions;
    uint64_t fails_one_in; /* 0: none.  Half of the calls that fail have been done. */
    size_t count;
    struct memory_object *objects[4096]; /* sorted by name */
};

struct plog_store memory_store_of(struct memory_store *m);
uint64_t memory_store_clock(void *ctx); /* one millisecond a call */
void memory_store_done(struct memory_store *m);
/* NULL: there is none. */
struct memory_object *memory_store_find(struct memory_store *m, const char *name);
size_t memory_store_count(const struct memory_store *m, const char *prefix);
