/* The names of a bucket with a backend that are this target's: what the backend lists and what is
 * here, each once, in bytewise order; as a list of the bucket shows them, without a delimiter. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct job;
struct target;

enum { COLD_NAMES_BATCH = 256 };

struct cold_names {
    struct target *target;
    uint64_t bucket_id;
    const char *prefix;
    bool skips_internal;
    const struct job *job; /* whose targets share what one has read of the backend (cold/pages.h) */
    bool backend_only;     /* leave out what is only here */
    bool (*is_ours)(void *ctx, const char *name); /* of what the backend has */
    void *ctx;
    const atomic_bool *stop; /* ends it with E_ABORTED */
};

/* Is it a bucket whose backend can be listed? */
bool cold_names_can(struct target *t, uint64_t bucket_id);
/* Blocks: fn() for batch after batch of at most COLD_NAMES_BATCH names, until it fails. */
int cold_names_each(const struct cold_names *n,
                    int (*fn)(void *ctx, const char *const *names, size_t count, struct error *err),
                    void *ctx, struct error *err);
