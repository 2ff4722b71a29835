/* Every call that a proxy takes: one table for each topic. */
#include "net/http/session_routes.h"
#include "proxy/ais/ais_routes.h"
#include "proxy/http/access_routes.h"
#include "proxy/http/auth_routes.h"
#include "proxy/http/batch.h"
#include "proxy/http/buckets.h"
#include "proxy/http/cache_routes.h"
#include "proxy/http/cluster_routes.h"
#include "proxy/http/console_routes.h"
#include "proxy/http/control_routes.h"
#include "proxy/http/daemon_routes.h"
#include "proxy/http/documents_routes.h"
#include "proxy/http/job_routes.h"
#include "proxy/list/routes.h"
#include "proxy/http/object_copies.h"
#include "proxy/http/objects.h"
#include "proxy/http/reseal.h"
#include "proxy/http/rings.h"
#include "proxy/http/signed_urls.h"
#include "proxy/http/upload_list.h"
#include "proxy/http/uploads.h"
#include "proxy/http/watch_routes.h"
#include "proxy/primary/proxy.h"
#include "proxy/s3/bucket_calls.h"
#include "proxy/s3/handlers.h"

const struct http_route *const proxy_routes[] = {
    object_routes,  list_routes,   bucket_routes,      job_routes,        cluster_routes,
    control_routes, daemon_routes, documents_routes,   session_routes,    object_copies_routes,
    access_routes,  reseal_routes, auth_routes,        signed_url_routes, s3_routes,
    bucket_calls,   upload_routes, upload_list_routes, batch_routes,      ais_routes,
    ring_routes,    cache_routes,  console_routes,     watch_routes,      NULL,
};
