/* Connections to one PostgreSQL database: each call takes one, new ones say hello. */
#pragma once

#include "mount/meta/postgres_link.h"

struct postgres_pool;

/* url: whole.  make: what a volume needs is made; otherwise E_NOT_FOUND. */
int postgres_pool_open(const char *url, bool make, unsigned most, unsigned timeout_ms,
                       struct postgres_pool **out, struct error *err);
void postgres_pool_close(struct postgres_pool *p); /* NULL is fine */

/* Any thread.  As postgres_link_run(), and waits for a server that is away.  again: may be sent
 * again if no reply came; otherwise that is E_IN_DOUBT.  A POSTGRES_NUMBER among the asks is the
 * number of a commit that is acknowledged now. */
int postgres_pool_run(struct postgres_pool *p, struct postgres_ask *asks, size_t count, bool again,
                      struct error *err);

typedef int postgres_use(void *context, struct postgres_link *l, struct error *err);
/* One transaction of one snapshot, of many round trips: read() makes them.  Waits for a server that
 * is away before it, and not after; read() is called once at most. */
int postgres_pool_snapshot(struct postgres_pool *p, postgres_use *read, void *context,
                           struct error *err);
