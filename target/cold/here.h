/* What a job reads of a bucket with a backend: is brought here before it is read, by the cold path
 * (cold.h), once for everybody who wants it. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct bucket;
struct job_pace;
struct target;

enum cold_here {
    COLD_HERE,    /* it was, and counts as what the backend has (the bucket's `validate`) */
    COLD_BROUGHT, /* now it is */
    COLD_NOWHERE, /* the backend does not have it either */
};

/* Blocks.  `pace`: NULL, or how slowly (job_pace.h).  *bytes: what was fetched. */
int cold_make_here(struct target *t, const struct bucket *b, const char *name,
                   struct job_pace *pace, enum cold_here *what, uint64_t *bytes, struct error *err);

/* All of them that the backend has, `prefetch_parallel` at once; the first failure ends it, and so
 * does the word to stop (E_ABORTED).  Nothing of a bucket without a backend. */
int cold_make_all_here(struct target *t, uint64_t bucket_id, const char *const *names, size_t count,
                       const atomic_bool *stop, struct error *err);
