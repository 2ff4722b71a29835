#include "mount/group/routes.h"

#include "net/daemon_metrics.h"
#include "net/http/session_routes.h"

static void health_begin(struct http_request *req)
{
    http_reply_empty(req, 204);
}

static const struct http_route member_routes[] = {
    {.name = "group_piece_get",
     .method = HTTP_GET,
     .pattern = "/v1/piece",
     .nets = NET_DATA,
     .right = RIGHT_NODE,
     .begin = group_piece_begin,
     .summary = "Bytes of one version of an object, within one piece of 4 MiB.",
     .query = HTTP_PARAMETERS(
         {"bucket", "its name"}, {"object", "its name"},
         {"etag", "the version's entity tag; empty: the checksum is of sums"},
         {"checksum", "TYPE:HEX of the version, or empty; sums:HEX of a block of a volume, "
                      "which never changes"},
         {"size", "of the version, in bytes"}, {"scope", "BUCKET-ID/TIME-OF-CREATION-MS"},
         {"offset", "bytes"}, {"length", "bytes"},
         {"how", "fetch: what is missing is fetched and kept; cached: only "
                 "what this member has; check: whether it has all; "
                 "warm: the same, after it has fetched what is missing"}),
     .body = "",
     .reply = "200 and the bytes; `ETag` is a sum of them. 204 for check and warm",
     .errors = "not_found precondition_failed object_not_found bucket_not_found overloaded "
               "network_error not_ready"},
    {.name = "group_drain",
     .method = HTTP_POST,
     .pattern = "/v1/drain",
     .nets = NET_DATA,
     .changes = true,
     .right = RIGHT_NODE,
     .begin = group_drain_begin,
     .summary = "From now on, until its next start, the member owns nothing, and gives what it has "
                "to the new owners.",
     .body = "",
     .reply = "204",
     .errors = "not_ready"},
    {.name = "group_health",
     .method = HTTP_GET,
     .pattern = "/v1/health",
     .nets = NET_DATA,
     .open = true,
     .right = RIGHT_NONE,
     .begin = health_begin,
     .summary = "Whether this process serves.",
     .body = "",
     .reply = "204",
     .errors = ""},
    {.name = "group_metrics",
     .method = HTTP_GET,
     .pattern = "/metrics",
     .nets = NET_DATA,
     .open = true,
     .right = RIGHT_NONE,
     .begin = daemon_metrics_reply,
     .summary = "Metrics of this process, as Prometheus reads them.",
     .body = "",
     .reply = "200 and text",
     .errors = ""},
    {.name = NULL},
};

const struct http_route *const group_routes[] = {member_routes, session_routes, NULL};
