/* A GET or HEAD that another target answers, through this one: the object is there and not here
 * yet. The client sees one reply, whether it follows redirects or not.
 *
 *   client ◀── reply ── this target ◀── pipe ── data loop ◀── GET at the other's data listener
 *
 * Where the other has it no more, it has been moved here meanwhile: then the call is served here.
 * So it is where owners were compared, and the other has another version by now, which not all of
 * them need know yet, or cannot read it.  A target of the previous release does not heed which
 * version it is asked for: what it sends says which it is.
 *
 * A 404 that says which version it is of tells that the archive is there, and its member is not. A
 * target of an earlier release does not know members, and sends the archive: that is refused. */
#pragma once

#include <stdbool.h>

struct earlier_answer;
struct object_call;
struct version;

/* Is the call to be served here in place of this reply?  `wanted`: the version that owners were
 * compared for, or NULL; `sent`: the reply's Dfc-Version, or NULL.  Pure. */
bool read_through_is_gone(const struct version *wanted, int status, const char *sent);

/* Replies; any thread. */
void read_through_begin(struct object_call *call, const struct earlier_answer *from);
