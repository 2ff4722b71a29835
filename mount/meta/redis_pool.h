/* Connections to one database of a Redis server: each call takes one, new ones say hello. */
#pragma once

#include "mount/meta/redis_link.h"
#include "mount/meta/redis_scripts.h"

enum {
    META_REDIS_LINKS = 16,      /* calls at once */
    META_REDIS_CALL_MS = 10000, /* until a reply */
};

struct redis_pool;

/* make: the database gets the engine's format if it has none; otherwise E_NOT_FOUND.  Warns in the
 * log if the server may lose or evict keys. */
int redis_pool_open(const char *where, bool make, struct redis_pool **out, struct error *err);
void redis_pool_close(struct redis_pool *p); /* NULL is fine */

/* How EVALSHA names the script. */
const char *redis_pool_sha(const struct redis_pool *p, enum redis_script script);

struct redis_request {
    struct redis_words words;
    bool again;  /* may be sent again if no reply came; otherwise that is E_IN_DOUBT */
    bool counts; /* a positive reply is the number of a commit */
};

/* Any thread.  Waits for a server that is away; see redis.h.  *out is no error. */
int redis_pool_call(struct redis_pool *p, const struct redis_request *request, redisReply **out,
                    struct error *err);
