#include "target/node/outward.h"

#include <arpa/inet.h>
#include <netdb.h>

#include "cluster/members/inner.h"
#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "common/address.h"
#include "common/log.h"

static bool is_refused(const struct outward *o, const struct sockaddr *address)
{
    _cleanup_state_ const struct cluster_state *s = state_current(o->state);
    return address_is_refused(o->allow, address) || inner_has(&s->smap, address);
}

/* The client is not told which address it was. */
static void log_refusal(const struct sockaddr *address)
{
    char host[INET6_ADDRSTRLEN] = "?";
    socklen_t len =
        address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    getnameinfo(address, len, host, sizeof host, NULL, 0, NI_NUMERICHOST);
    log_warn("address of a backend or download refused: it is private, local or a node's own",
             lstr("address", host), lu64("port", address_port(address)),
             lstr("parameter", "backend_allow"));
}

bool outward_may_connect(void *ctx, const struct sockaddr *address)
{
    const struct outward *o = ctx;
    bool refused = is_refused(o, address);
    if (refused)
        log_refusal(address);
    return !refused;
}
