#include "proxy/primary/follower_plan.h"

#include "common/error.h"

enum follower_call follower_plan_call(const struct follower_plan *p)
{
    return p->member ? FOLLOWER_KEEPALIVE : FOLLOWER_REGISTER;
}

enum follower_call follower_plan_ended(struct follower_plan *p, enum follower_call call, int code,
                                       bool newer)
{
    if (call == FOLLOWER_KEEPALIVE && code == E_NODE_NOT_FOUND) {
        p->member = false;
        return FOLLOWER_REGISTER;
    }
    p->use_join = code != 0 && !p->use_join;
    p->member = p->member || (call == FOLLOWER_REGISTER && code == 0);
    return call == FOLLOWER_KEEPALIVE && code == 0 && newer ? FOLLOWER_FETCH : FOLLOWER_NOTHING;
}
