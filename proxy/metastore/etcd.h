/* What the metastore in etcd needs to know (proxy/metastore/metastore.h has its functions). */
#pragma once

#include <stdint.h>

#include "proxy/metastore/etcd_client.h"

struct etcd_store_config {
    struct etcd_endpoints endpoints;
    const char *prefix;         /* of the cluster's keys: "/dfc" */
    uint64_t lease_ttl_ms;      /* whole seconds; etcd may grant more */
    uint64_t commit_timeout_ms; /* a commit is in doubt after so long */
    uint64_t request_max;       /* etcd's --max-request-bytes */
};
