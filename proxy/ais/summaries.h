/* Summaries of buckets that are not whole yet.  The SDK asks for a summary again and again by one
 * id, and waits for each reply for some seconds only.  What one request has summed up is kept here
 * for the next one.
 *
 * Nothing depends on it: a summary that is not found begins anew.  At most SUMMARIES_MAX are kept;
 * the one that was put first is dropped for a new one.  Thread-safe. */
#pragma once

#include <stdbool.h>

#include "proxy/ais/bucket_sums.h"

enum { SUMMARIES_MAX = 64 };

struct summaries;

struct summaries *summaries_new(void);
void summaries_free(struct summaries *s); /* NULL is fine */
/* Takes it out.  `key`: id, bucket and all that says what is summed up.  *token: where its list
 * goes on, malloc'ed.  False: there is none. */
bool summaries_take(struct summaries *s, const char *key, struct bucket_sums *sums, char **token);
void summaries_put(struct summaries *s, const char *key, const struct bucket_sums *sums,
                   const char *token);
