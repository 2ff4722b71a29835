/* A bounded pool of worker threads, for work that blocks or computes.  The queue has a limit:
 * when it is full pool_submit says E_OVERLOAD at once, and the caller answers its client so.
 *
 * Threads are started on demand.  A job starts a thread if no idle thread can take it and fewer
 * than `threads` exist.  A thread ends after POOL_IDLE_MS without a job.  The thread that became
 * idle last gets the next job, so that the others can end.
 *
 * If the system refuses a thread, the threads that exist do the work.  If there is none, the job
 * is refused with E_OVERLOAD: a pool whose work must never be refused keeps a thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct pool;

enum { POOL_IDLE_MS = 60000 };

/* Starts no thread.  `thread_name` must live as long as the pool. */
int pool_new(const char *thread_name, unsigned threads, size_t queue_max, struct pool **out,
             struct error *err);
/* So many threads start now and stay.  E_OVERLOAD: the system refuses one, and the pool is as if
 * those that did start were not to stay. */
int pool_keep(struct pool *p, unsigned threads, struct error *err);
/* Changes how long a thread stays without a job.  Threads that are idle already keep the old
 * time. */
void pool_set_idle(struct pool *p, uint64_t idle_ms);
/* Threads that start from now on yield the processors: their nice value is so much greater than
 * that of the process. */
void pool_set_nicer(struct pool *p, int by);
/* Any thread may call it, jobs of the pool included.  E_OVERLOAD: fn will not be called. */
int pool_submit(struct pool *p, void (*fn)(void *arg), void *arg, struct error *err);
/* Threads that exist now, idle ones included.  Any thread may call it. */
unsigned pool_threads(struct pool *p);
/* Runs what is queued, and what those jobs submit in turn, then ends the threads. */
void pool_free(struct pool *p);

/* The two decisions, pure.  `queued` includes the new job; `busy` threads run a job. */
struct pool_load {
    unsigned limit, threads, busy;
    size_t queued;
};
bool pool_wants_thread(const struct pool_load *load);
bool pool_thread_ends(uint64_t idle_since_ms, uint64_t now_ms, uint64_t idle_ms);

/* A bounded set of parallel calls with a join: fn(ctx, i) for i in [0, n), at most `width` at a
 * time, in the calling thread and width - 1 others.  fn returns 0 or a code and fills err; after
 * the first failure no new call begins.  Returns the failure of the lowest i. */
int parallel_for(const char *thread_name, unsigned width, size_t n,
                 int (*fn)(void *ctx, size_t i, struct error *err), void *ctx, struct error *err);
