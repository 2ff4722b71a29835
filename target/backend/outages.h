/* Which backends fail now: those whose last OUTAGE_FAILURES requests got no usable answer.  One
 * answer ends an outage, also one that refuses the request or has no such object.
 *
 * A backend is its bucket's URL.  Of failing ones the OUTAGES_MAX last are remembered.  Threads:
 * any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { OUTAGES_MAX = 64, OUTAGE_FAILURES = 2 };

struct outages;

struct outages *outages_new(void);
void outages_free(struct outages *o); /* NULL is fine */

/* A request has ended with this code (target/backend/failure.h).  Codes that say nothing of the
 * backend change nothing.  NULL is fine: nothing is kept. */
void outages_note(struct outages *o, const char *url, int code);
bool outages_has(struct outages *o, const char *url);
