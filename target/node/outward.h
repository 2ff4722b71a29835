/* What this target may connect to for a client that named the host: a bucket's backend, a download,
 * an external key map.  The client of such calls asks for each address, after it is resolved, and
 * so after each redirect; `--backend-allow` has the inner ones that are wanted (common/address.h),
 * and the cluster's own networks are refused in any case (cluster/members/inner.h). */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

struct address_list;
struct state_holder;

struct outward {
    struct address_list *allow;
    struct state_holder *state; /* the map */
};

/* Of struct http_client_config, whose context is a struct outward. */
bool outward_may_connect(void *ctx, const struct sockaddr *address);
