#include "target/copies/hand_next.h"

#include "common/error.h"

bool hand_may_begin(int failure, bool may_be_there)
{
    return !may_be_there && (failure == E_STALE_MAP || failure == E_NODE_UNREACHABLE);
}

enum hand_next hand_next(const struct hand_view *v)
{
    bool not_leader = v->failure == E_STALE_MAP || v->failure == E_NOT_READY;
    if (!v->has_leader || (!not_leader && v->failure != E_NODE_UNREACHABLE))
        return HAND_STOP;
    if (v->map_changed || (!v->leader_is_self && (not_leader || v->first)))
        return HAND_SEND;
    return not_leader ? HAND_WAIT : HAND_STOP;
}
