/* The rates of all users of one node (rate.h).  Any thread.
 *
 * A user without a limit has no entry, and one that made no call for an hour loses it. */
#pragma once

#include "access/rate.h"

struct rates;

struct rates *rates_new(void);
void rates_free(struct rates *r); /* NULL is fine */
/* As rate_take_request() and rate_take_bytes(); `id` is the user's. */
uint64_t rates_take_request(struct rates *r, const char *id, const struct access_rate *limit,
                            uint64_t now_ms);
uint64_t rates_take_bytes(struct rates *r, const char *id, const struct access_rate *limit,
                          uint64_t bytes, uint64_t now_ms);
size_t rates_count(struct rates *r); /* entries; for tests */
