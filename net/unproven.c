#include "net/unproven.h"

#include <stdatomic.h>

#include "common/mem.h"
#include "net/peers.h"

struct unproven {
    unsigned max, each_max;
    atomic_uint count;
    struct peers *peers;
};

struct unproven *unproven_new(unsigned connections_max)
{
    struct unproven *u = xcalloc(1, sizeof *u);
    unsigned share = connections_max / UNPROVEN_SHARE;
    u->max = share > UNPROVEN_MIN ? share : UNPROVEN_MIN;
    u->each_max = u->max - u->max / 4;
    u->peers = peers_new(u->each_max);
    return u;
}

void unproven_free(struct unproven *u)
{
    if (u == NULL)
        return;
    peers_free(u->peers);
    free(u);
}

int unproven_enter(struct unproven *u, const struct sockaddr *peer, struct error *err)
{
    if (atomic_fetch_add(&u->count, 1) >= u->max) {
        atomic_fetch_sub(&u->count, 1);
        return error_set(err, E_OVERLOAD,
                         "%u connections to the node have sent nothing signed yet, a quarter of "
                         "connections_max: try again",
                         u->max);
    }
    if (!peers_enter(u->peers, peer)) {
        atomic_fetch_sub(&u->count, 1);
        return error_set(err, E_OVERLOAD,
                         "%u connections of this address have sent nothing signed yet, the limit "
                         "for one address: close some",
                         u->each_max);
    }
    return 0;
}

void unproven_leave(struct unproven *u, const struct sockaddr *peer)
{
    peers_leave(u->peers, peer);
    atomic_fetch_sub(&u->count, 1);
}
