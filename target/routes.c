/* All calls of a target: a table a room. */
#include "target/node/target.h"

#include "net/http/session_routes.h"
#include "target/archive/batch.h"
#include "target/cold/check_routes.h"
#include "target/cold/cold.h"
#include "target/copies/held.h"
#include "target/copies/hidden.h"
#include "target/copies/dirty_worker.h"
#include "target/copies/staged.h"
#include "target/http/cluster_routes.h"
#include "target/http/daemon_routes.h"
#include "target/http/index_routes.h"
#include "target/http/mountpath_routes.h"
#include "target/http/object_inspect.h"
#include "target/http/object_routes.h"
#include "target/http/upload_routes.h"
#include "target/http/xaction_routes.h"
#include "target/ring/routes.h"
#include "target/s3/handlers.h"
#include "target/slices/slice_repair.h"
#include "target/slices/slices.h"

const struct http_route *const target_routes[] = {
    object_routes,  daemon_routes,         mountpath_routes,  cluster_routes,
    index_routes,   list_routes,           xaction_routes,    sort_stream_routes,
    held_routes,    staged_routes,         dirty_routes,      hidden_routes,
    session_routes, cold_list_routes,      cold_check_routes, ec_slice_routes,
    ec_mend_routes, object_inspect_routes, s3_routes,         batch_routes,
    upload_routes,  upload_list_routes,    ring_routes,       NULL,
};
