/* Every call that a proxy takes: one table for each topic. */
#include "net/session_routes.h"
#include "proxy/buckets.h"
#include "proxy/cluster_routes.h"
#include "proxy/control_routes.h"
#include "proxy/daemon_routes.h"
#include "proxy/documents_routes.h"
#include "proxy/job_routes.h"
#include "proxy/list.h"
#include "proxy/object_copies.h"
#include "proxy/objects.h"
#include "proxy/proxy.h"

const struct http_route *const proxy_routes[] = {
    object_routes,  list_routes,   bucket_routes,    job_routes,     cluster_routes,
    control_routes, daemon_routes, documents_routes, session_routes, object_copies_routes,
    NULL,
};
