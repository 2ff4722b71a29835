/* A proxy that is told to stop, while others go on.
 *
 *   hand over    with a shared metastore: it ends what it has begun as the primary, gives the lease
 *                back and waits until another is elected; requests for the primary wait meanwhile
 *   tell         the primary, so that nobody is sent here any more
 *   linger       clients that have this proxy's address are served for stop_linger more; each reply
 *                closes its connection
 */
#pragma once

#include <stdint.h>

struct proxy;
struct proxy_params;

/* In the main thread, before proxy_free().  Another signal ends it. */
void proxy_leave(struct proxy *p, int signals_fd);
/* The longest that it takes. */
uint64_t proxy_leave_max_ms(const struct proxy_params *params);
