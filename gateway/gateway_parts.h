/* What a gateway is made of: for gateway.c and entry.c. */
#pragma once

#include <stdatomic.h>

#include "gateway/gateway.h"

enum { GATEWAY_DOMAINS_MAX = 16 };

struct gateway {
    struct gateway_config config;
    atomic_uint forwards; /* under way */
    char *region;
    char *domains; /* its commas are NULs */
    const char *domain[GATEWAY_DOMAINS_MAX];
    size_t domain_count;
    struct signing_keys *keys;
};
