/* Ends a call of an upload that has no time limit when its target answers nobody.
 *
 * A completion sends no byte while it works, for as long as its bytes take.  So its call does not
 * tell a target that works from one whose process is stopped.  The map does: the watch cancels the
 * call when the map has the target unreachable, or not at all, for `silence_ms` on end.
 *
 * All calls are in the thread of the gateway's loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gateway;
struct upload_watch;

/* `number`: of the call (http_call_start()). */
struct upload_watch *upload_watch_new(const struct gateway *g, const char *upload, uint64_t number);
/* The call goes on at another URL. */
void upload_watch_follow(struct upload_watch *w, uint64_t number);
/* Has it cancelled the call? */
bool upload_watch_gave_up(const struct upload_watch *w);
void upload_watch_free(struct upload_watch *w); /* NULL is fine */
