/* Commits of a session, each made exactly once.
 *
 * A commit expects that its lane's number is the one of the lane's last commit, and puts the next
 * number.  The lanes end with their session, so that a client that was given up cannot commit.
 * After a commit without a reply the number tells:
 *
 *     n      it was not made, but may still be on its way.  A commit of its own puts n + 2, so that
 *            the first one cannot be made any more
 *     n + 1  it was made
 *     n + 2  it was not made, and cannot be
 *     less, or absent: the engine has lost commits, or the session was given up.  The session is
 *            over: every later commit fails
 */
#pragma once

#include "mount/volume/calls.h"
#include "mount/volume/volume_parts.h"

enum lane_result {
    LANE_MADE,
    LANE_CONFLICT, /* an expectation of the caller does not hold */
    LANE_OVER,     /* the session is over */
    LANE_FAILED,   /* the engine's error is in err; the commit was not made, or is in doubt */
};

/* Room that lane_commit() uses before the caller's steps. */
enum { LANE_STEPS = 2 };

/* steps[LANE_STEPS] is the caller's first one; `count` counts all.  call: what
 * the commit is of; NULL is fine. */
enum lane_result lane_commit(struct volume *v, struct call *call, struct meta_step *steps,
                             size_t count, struct error *err);
