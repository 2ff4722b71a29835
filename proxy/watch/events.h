/* The events of the cluster at one proxy: what makes them, and calls that wait for the next one.
 *
 *     events_state(e, s)               a new state, in the control loop's thread
 *     events_keepalive(e, …)           a node's report, at the primary; any thread
 *     events_wait(e, after, …, fn)     fn when there is an event later than `after`, or in time
 *
 * Every proxy sees the states, the primary alone the keepalives. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/watch/event_log.h"

struct cluster_state;
struct events;
struct keepalive;
struct loop;

struct events_config {
    const char *run;  /* id of this run of the proxy */
    size_t keep;      /* events */
    size_t waits_max; /* calls that wait at once */
};

struct events *events_new(const struct events_config *config);
void events_free(struct events *e); /* NULL is fine; after events_stop() */
struct event_log *events_log(struct events *e);

/* What was known before this run is no event: `s` is where the proxy begins. */
void events_begin(struct events *e, const struct cluster_state *s);
void events_state(struct events *e, const struct cluster_state *s);
void events_keepalive(struct events *e, const char *id, const struct keepalive *before,
                      const struct keepalive *now);

/* From here on calls may wait: looks at them in this loop, where `over(ctx)` ends all waits.  Not
 * in the loop's thread. */
void events_start(struct events *e, struct loop *loop, bool (*over)(void *ctx), void *ctx);
void events_stop(struct events *e); /* ends all waits; in the loop's thread */
/* fn(arg) in the loop's thread, once.  False: there are as many already, or none can wait yet; fn
 * is not called. */
bool events_wait(struct events *e, uint64_t after, uint64_t wait_ms, void (*fn)(void *arg),
                 void *arg);
