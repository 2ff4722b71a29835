/* What waits to get to the backends of its buckets: names, each once, and whose turn it is.
 *
 *   note ─▶ waits ── take ─▶ runs ─┬─ over ─────────────────▶ gone
 *             ▲                    ├─ over, noted meanwhile ─┐
 *             ├────────────────────┴─ failed ────────────────┘
 *             └─ rests ◀─────────────── put off
 *
 * The names of one bucket are taken in the order in which they were noted; those that failed go to
 * the end.  After a failure the bucket rests, for twice as long with each in a row, and one name at
 * a time is tried until one is over.  Buckets take turns.  What has failed for a reason of its own
 * (an earlier owner that is away) is put off: it rests by itself, and the bucket goes on.
 *
 * Room.  A bucket may have as many names here as there is still room for, and no more: one alone
 * half of all, the next one a quarter …  So none that cannot get rid of its names keeps the others
 * from having any.
 *
 * It is derived (back.h): what it has no room for, or forgets with the process, is found again.
 *
 * Pure: time is given.  No locks: the owner's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"

struct backlog;
struct backlog_name;

struct backlog_rules {
    size_t most;           /* names */
    uint64_t pause_ms;     /* after the first failure of a bucket … */
    uint64_t pause_max_ms; /* … and at most */
    uint64_t put_off_ms;   /* of a name alone */
};

struct backlog *backlog_new(const struct backlog_rules *rules);
void backlog_free(struct backlog *b); /* NULL is fine */
DEFINE_CLEANUP(struct backlog, backlog_free);

/* False: there is no room for it, and its bucket overflows.  written_ms: when, by the wall. */
bool backlog_note(struct backlog *b, uint64_t bucket_id, const char *name, int64_t written_ms);
/* Is there a bucket that overflows, so that not all of its names are here?  Has one of them now
 * room for as many as it has, so that it is worth looking for the rest?  Who looks says so first.
 */
bool backlog_overflows(const struct backlog *b);
bool backlog_has_room(const struct backlog *b);
void backlog_looks(struct backlog *b);
/* The next one, which runs from now on until one of the two calls below; NULL: none may, for
 * *wait_ms (UINT64_MAX: until something else happens). */
struct backlog_name *backlog_take(struct backlog *b, uint64_t now_ms, uint64_t *wait_ms);
void backlog_over(struct backlog *b, struct backlog_name *n);
void backlog_failed(struct backlog *b, struct backlog_name *n, uint64_t now_ms);
void backlog_put_off(struct backlog *b, struct backlog_name *n, uint64_t now_ms);

uint64_t backlog_bucket_id(const struct backlog_name *n);
const char *backlog_text(const struct backlog_name *n);
bool backlog_has_failed(const struct backlog_name *n); /* since it was noted */
/* For who has taken it: a number, 0 at first, that stays with the name until it is gone. */
uint64_t *backlog_memo(struct backlog_name *n);

bool backlog_runs(const struct backlog *b, uint64_t bucket_id, const char *name);
/* Does any run for which fn() says yes? */
bool backlog_any_runs(const struct backlog *b,
                      bool (*fn)(void *ctx, uint64_t bucket_id, const char *name), void *ctx);
/* All, those that run too.  *stuck: so many of them have failed for so long. */
size_t backlog_count(const struct backlog *b, uint64_t now_ms, uint64_t stuck_ms, size_t *stuck);
/* Those of which the backend lacks a write from before that time, by the wall.  *oldest_ms: the
 * time of the first write that is lacking; of none INT64_MAX. */
size_t backlog_late(const struct backlog *b, int64_t before_ms, int64_t *oldest_ms);
