/* One connection to a Redis server.  It belongs to one thread at a time. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdbool.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "mount/meta/redis_place.h"

struct redis_link;

/* Connects; sends nothing.  timeout_ms: for the connection, and for each call.  E_NET. */
int redis_link_open(const struct redis_place *place, unsigned timeout_ms, struct redis_link **out,
                    struct error *err);
void redis_link_close(struct redis_link *l);
DEFINE_CLEANUP(struct redis_link, redis_link_close);

/* False: the server has closed it, or has sent what nobody asked for. */
bool redis_link_is_idle(const struct redis_link *l);

struct redis_words {
    const char *const *text;
    const size_t *sizes;
    size_t count;
};

/* *out may be an error of the server.  E_NET: the server has not got the whole command, and so does
 * not do it.  E_IN_DOUBT: it may have done it.  After either the connection is of no use. */
int redis_link_call(struct redis_link *l, const struct redis_words *words, redisReply **out,
                    struct error *err);
