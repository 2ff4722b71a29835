/* A bounded pool of worker threads, for work that blocks or computes.  The queue has a limit:
 * when it is full pool_submit says E_OVERLOAD at once, and the caller answers its client so. */
#pragma once

#include <stddef.h>

#include "common/error.h"

struct pool;

int pool_new(const char *thread_name, unsigned threads, size_t queue_max, struct pool **out,
             struct error *err);
int pool_submit(struct pool *p, void (*fn)(void *arg), void *arg, struct error *err);
/* Runs what is queued, and what those jobs submit in turn, then ends the threads. */
void pool_free(struct pool *p);

/* A bounded set of parallel calls with a join: fn(ctx, i) for i in [0, n), at most `width` at a
 * time, in the calling thread and width - 1 others.  fn returns 0 or a code and fills err; after
 * the first failure no new call begins.  Returns the first failure in order of time. */
int parallel_for(const char *thread_name, unsigned width, size_t n,
                 int (*fn)(void *ctx, size_t i, struct error *err), void *ctx, struct error *err);
