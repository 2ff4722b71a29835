/* May a failed PUT be sent on (hand_on.h), and what does its sender do next?  Pure.
 *
 * The next leader gives what it is sent another version.  A write that a target has, or may have,
 * would then be made twice, and the second time undo what came between.  Such a write is in doubt,
 * and is never sent on (hand_may_begin()).
 *
 * hand_next():
 *
 *   the leader is    last failure     map since the last attempt   next
 *   not known        any              any                          stop
 *   another target   not its leader   any                          send
 *   another target   unreachable      changed, or first attempt    send
 *   another target   unreachable      the same                     stop
 *   this target      any              changed                      send
 *   this target      not its leader   the same                     wait
 *   this target      unreachable      the same                     stop
 *   any              any other        any                          stop
 *
 * "Not its leader" is E_STALE_MAP or E_NOT_READY, "unreachable" is E_NODE_UNREACHABLE.  By the same
 * map this target chooses the same targets again, and fails again. */
#pragma once

#include <stdbool.h>

/* may_be_there: a target was told to commit it, and has not refused for good. */
bool hand_may_begin(int failure, bool may_be_there);

enum hand_next {
    HAND_STOP, /* the client gets the last failure */
    HAND_WAIT, /* for a short time, and then decide again */
    HAND_SEND,
};

struct hand_view {
    bool has_leader;
    bool leader_is_self;
    bool first;       /* nothing was sent on yet */
    bool map_changed; /* since what failed last was begun */
    int failure;      /* its code */
};

enum hand_next hand_next(const struct hand_view *v);
