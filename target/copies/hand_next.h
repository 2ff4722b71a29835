/* What the sender of a failed PUT does next (hand_on.h).  Pure.
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
