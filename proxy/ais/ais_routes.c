#include "proxy/ais/ais_routes.h"

#include "access/redirect_proof.h"
#include "ais/dialect.h"
#include "proxy/ais/ais_batch.h"
#include "proxy/ais/ais_buckets.h"
#include "proxy/ais/ais_cluster.h"
#include "proxy/ais/ais_copies.h"
#include "proxy/ais/ais_jobs.h"
#include "proxy/ais/ais_lists.h"
#include "proxy/ais/ais_objects.h"
#include "proxy/ais/ais_refused.h"
#include "proxy/ais/ais_sort.h"
#include "proxy/ais/ais_uploads.h"

#define BUCKET_PATTERN AIS_PREFIX "/v1/buckets/{bucket}"
#define OBJECT_PATTERN AIS_PREFIX "/v1/objects/{bucket}/{object...}"
#define UPLOAD_PATTERN AIS_PREFIX AIS_UPLOADS "/v1/objects/{bucket}/{object...}"
#define UPLOAD                             \
    {                                      \
        "uploadId", "the id of mpt-upload" \
    }
#define COMMON                                                 \
    {"provider", "ais, or what the backend is: aws, gcp, ht"}, \
    {                                                          \
        "namespace", "empty"                                   \
    }
#define BUCKET_ERRORS "bucket_not_found invalid_name not_supported"
#define JOB_ERRORS "invalid_json invalid_spec no_targets node_unreachable too_large overloaded"
#define OBJECT_ERRORS BUCKET_ERRORS " object_not_found no_targets node_unreachable"
#define UPLOAD_ERRORS BUCKET_ERRORS " not_found invalid_json no_targets node_unreachable"
/* The SDK's bodies are JSON, and say so; what it sends to be stored says so, too. */
#define REFUSED(name_, method_, pattern_, right_)                                    \
    {                                                                                \
        .name = name_, .method = method_, .pattern = pattern_, .nets = NET_PUBLIC,   \
        .right = right_, .any_type = true, .begin = ais_refused_begin,               \
        .summary = "A call of AIStore's API that is not served.",                    \
        .query = HTTP_PARAMETERS({HTTP_ANY_PARAMETER, "not looked at"}), .body = "", \
        .reply = "501", .errors = "not_supported"                                    \
    }

/* Get-Batch; the bucket of the path is that of entries without one. */
#define BATCH(name_, pattern_)                                                                     \
    {                                                                                              \
        .name = name_, .method = HTTP_GET, .pattern = pattern_, .nets = NET_PUBLIC,                \
        .right = RIGHT_ANY, .begin = ais_batch_begin,                                              \
        .summary = "Reads many objects, members and ranges in one archive. Needs the right "       \
                   "`read` on each object.",                                                       \
        .query = HTTP_PARAMETERS(COMMON, {"coloc", "not looked at"}),                              \
        .body = "`{\"in\": [{\"objname\", \"bucket\", \"provider\", \"archpath\", \"start\", "     \
                "\"length\", \"opaque\"}], \"mime\", \"coer\", \"onob\", \"strm\", \"coloc\"}`",   \
        .reply = "the archive; without `strm` multipart: `{\"out\", \"uuid\"}`, then the archive", \
        .errors = "of the target: those of [batch](#batch)"                                        \
    }

const struct http_route ais_routes[] = {
    {.name = "ais_smap",
     .method = HTTP_GET,
     .pattern = AIS_PREFIX "/v1/daemon",
     .nets = NET_PUBLIC,
     .right = RIGHT_SEE,
     .begin = ais_smap_begin,
     .summary = "The map of the cluster for AIStore's SDK.",
     .query = HTTP_PARAMETERS({"what", "smap"}, COMMON),
     .body = "",
     .reply = "`{\"tmap\", \"pmap\", \"proxy_si\", \"version\", \"uuid\"}`",
     .errors = "not_ready not_supported"},
    {.name = "ais_health",
     .method = HTTP_GET,
     .pattern = AIS_PREFIX "/v1/health",
     .nets = NET_PUBLIC,
     .right = RIGHT_ANY,
     .begin = ais_health_begin,
     .summary = "Is this proxy ready?",
     .query = HTTP_PARAMETERS({"prr", "true"}, COMMON),
     .body = "",
     .reply = "200",
     .errors = "not_ready"},
    {.name = "ais_jobs",
     .method = HTTP_GET,
     .pattern = AIS_PREFIX "/v1/cluster",
     .nets = NET_PUBLIC,
     .right = RIGHT_SEE,
     .begin = ais_jobs_begin,
     .summary = "Background jobs in the forms of AIStore's SDK.",
     .query = HTTP_PARAMETERS({"what", "status, status_all, running_all or qryxstats"}, COMMON),
     .body = "`{\"ID\", \"Kind\", \"DaemonID\"}` or `{\"id\", \"kind\", \"node\", "
             "\"show_active\"}`; an id says all",
     .reply = "status: `{\"uuid\", \"kind\", \"err\", \"end_time\", \"aborted\"}`; status_all: a "
              "list of those; running_all: `[\"KIND[ID]\"]`; qryxstats: `{\"TARGET\": [snapshot]}`",
     .errors = "job_not_found invalid_json not_supported"},
    {.name = "ais_jobs_change",
     .method = HTTP_PUT,
     .pattern = AIS_PREFIX "/v1/cluster",
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_JOBS,
     .begin = ais_jobs_change_begin,
     .summary = "Starts a job by its kind, or aborts jobs.",
     .query = HTTP_PARAMETERS({"force", "not looked at: a job that is started runs"}, COMMON),
     .body = "`{\"action\": \"start\", \"value\": {\"Kind\"}}` or `{\"action\": \"stop\", "
             "\"value\": {\"ID\" or \"Kind\"}}`; a job that has ended stays as it is",
     .reply = "start: 202 and the job's id as text; stop: 200",
     .errors = "job_not_found job_state invalid_json invalid_argument no_targets "
               "node_unreachable overloaded not_supported"},
    {.name = "ais_bucket_list",
     .method = HTTP_GET,
     .pattern = AIS_PREFIX "/v1/buckets",
     .nets = NET_PUBLIC,
     .right = RIGHT_ANY,
     .begin = ais_buckets_begin,
     .summary = "All buckets that the caller may list.",
     .query = HTTP_PARAMETERS(
         {"provider", "ais or empty: all; aws, gcp or ht: those with such a backend"},
         {"namespace", "empty"}, {"presence", "not looked at"}),
     .body = "not looked at",
     .reply = "`[{\"name\", \"provider\": \"ais\"}]`",
     .errors = ""},
    {.name = "ais_bucket_post",
     .method = HTTP_POST,
     .pattern = BUCKET_PATTERN,
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_ANY,
     .begin = ais_bucket_post_begin,
     .summary = "Creates or renames a bucket, copies or prefetches its objects, with the rights of "
                "[bucket_create](#bucket_create).",
     .query = HTTP_PARAMETERS(COMMON, {"bck_to", "of move-bck and copy-bck: ais/@#/NAME/"}),
     .body = "`{\"action\": \"create-bck\"}`; `{\"action\": \"move-bck\"}`; `{\"action\": "
             "\"copy-bck\", \"value\": {\"prefix\", \"prepend\"}}`; `{\"action\": "
             "\"copy-listrange\", \"value\": {\"objnames\": [name, …] or \"template\": text, "
             "\"tobck\": {\"name\"}, \"prepend\"}}`; `{\"action\": \"prefetch-listrange\", "
             "\"value\": {\"objnames\" or \"template\", \"num-workers\"}}`",
     .reply = "201; 204; of a job 202 and its id as text",
     .errors = BUCKET_ERRORS " bucket_exists " JOB_ERRORS},
    {.name = "ais_bucket_put",
     .method = HTTP_PUT,
     .pattern = BUCKET_PATTERN,
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_ANY,
     .begin = ais_bucket_put_begin,
     .summary = "Makes one archive of objects of the bucket, with the rights of "
                "[bucket_create](#bucket_create).",
     .query = HTTP_PARAMETERS(COMMON),
     .body = "`{\"action\": \"archive\", \"value\": {\"objnames\": [name, …] or \"template\": "
             "text, \"archname\", \"tobck\": {\"name\"}, \"mime\", \"isbn\"}}`",
     .reply = "202 and the job's id as text",
     .errors = BUCKET_ERRORS " " JOB_ERRORS},
    {.name = "ais_bucket_delete",
     .method = HTTP_DELETE,
     .pattern = BUCKET_PATTERN,
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_ANY,
     .begin = ais_bucket_delete_begin,
     .summary =
         "Destroys a bucket and the objects in it, which needs the right `admin`; or deletes "
         "or evicts some of its objects, with the rights of [bucket_create](#bucket_create).",
     .query = HTTP_PARAMETERS(COMMON, {"keep_bck_md", "not looked at"}),
     .body = "`{\"action\": \"destroy-bck\"}`; `{\"action\": \"delete-listrange\" or "
             "\"evict-listrange\", \"value\": {\"objnames\": [name, …] or \"template\": text}}`; "
             "without an action the call is refused",
     .reply = "204; of a job 202 and its id as text",
     .errors = BUCKET_ERRORS " " JOB_ERRORS},
    {.name = "ais_bucket_head",
     .method = HTTP_HEAD,
     .pattern = BUCKET_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_LIST,
     .begin = ais_bucket_head_begin,
     .summary = "Does the bucket exist? And the sums of its objects.",
     .query = HTTP_PARAMETERS(COMMON, {"presence", "not looked at"},
                              {"bsumm_remote", "true: sums, also of objects that only the backend "
                                               "has; false: sums of the objects that are stored"},
                              {"uuid", "with it: the summary of this id"}),
     .body = "",
     .reply = "200, with `Ais-Bucket-Props`; of a summary 202 and `Ais-Xaction-Id`, its id; with "
              "the id 202, or 200 and `Ais-Bucket-Summ`",
     .errors = BUCKET_ERRORS " invalid_argument node_unreachable no_targets"},
    {.name = "ais_object_list",
     .method = HTTP_GET,
     .pattern = BUCKET_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_LIST,
     .begin = ais_list_begin,
     .summary = "A page of a bucket's objects, or their sums.",
     .query = HTTP_PARAMETERS(COMMON),
     .body = "`{\"action\": \"summary-bck\", \"value\": {\"uuid\", \"prefix\", \"cached\"}}`; "
             "`{\"action\": \"list\", \"value\": {\"prefix\", \"pagesize\", \"uuid\", \"props\", "
             "\"continuation_token\", \"flags\", \"start_after\"}}`",
     .reply =
         "of a summary 202 and its id as text; with the id 202, or 200 and `[sums]`; of a list "
         "MessagePack: `{\"UUID\", \"ContinuationToken\", \"Flags\", \"Entries\": [{\"n\", "
         "\"cs\", \"v\", \"s\", \"f\"}]}`",
     .errors = BUCKET_ERRORS " invalid_json node_unreachable no_targets"},
    {.name = "ais_object_get",
     .method = HTTP_GET,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .begin = ais_object_read_begin,
     .summary = "Reads an object, or members of the archive that it is: one, or a tar of those "
                "that match.",
     .query = HTTP_PARAMETERS(COMMON, {"archpath", "name of a member"},
                              {"archregx", "what names of members are compared with"},
                              {"archmode", "regexp, prefix, suffix, substr or wdskey"},
                              {"etl_name", "refused: ETL"}, {"etl_args", "refused: ETL"},
                              {"etl_pipeline", "refused: ETL"}, {"latest-ver", "false"}),
     .body = "",
     .reply = "307 to the target; its reply is the bytes, with headers `ais-*`",
     .errors = OBJECT_ERRORS " range_not_satisfiable member_not_found"},
    {.name = "ais_object_head",
     .method = HTTP_HEAD,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .begin = ais_object_read_begin,
     .summary = "The headers of an object.",
     .query = HTTP_PARAMETERS(
         COMMON, {"props", "not looked at: all are sent"}, {"archpath", "name of a member"},
         {"archregx", "what names of members are compared with"},
         {"archmode", "regexp, prefix, suffix, substr or wdskey"}, {"etl_name", "refused: ETL"},
         {"etl_args", "refused: ETL"}, {"etl_pipeline", "refused: ETL"}, {"latest-ver", "false"},
         {"presence", "not looked at"}),
     .body = "",
     .reply = "307 to the target; its reply has headers `ais-*`",
     .errors = OBJECT_ERRORS " member_not_found"},
    {.name = "ais_object_put",
     .method = HTTP_PUT,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .any_type = true,
     .right = RIGHT_WRITE,
     .begin = ais_object_put_begin,
     .summary = "Stores an object: streams it to the target that owns it. Its `Content-Type` is "
                "not kept, since the SDK sends the same one with everything.",
     .query = HTTP_PARAMETERS(COMMON, {"archpath", "name of a member: it is put into the archive"},
                              {"archmime", "not looked at: the archive's bytes say what it is"},
                              {"append_type", "refused: appending"},
                              {"append_handle", "refused: appending"},
                              {"partNumber", "refused: a part without uploadId"}),
     .body = "the bytes; with `archpath` the header `ais-pine`: 1, append; 2, make an archive that "
             "is missing, too; with `Connection: close`, as the SDK sends over TLS, the reply is a "
             "redirect",
     .reply = "200",
     .errors = OBJECT_ERRORS " no_space quota_exceeded"},
    {.name = "ais_object_delete",
     .method = HTTP_DELETE,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_DELETE,
     .begin = ais_object_delete_begin,
     .summary = "Deletes an object.",
     .query = HTTP_PARAMETERS(COMMON),
     .body = "",
     .reply = "307 to the target; its reply is 204",
     .errors = OBJECT_ERRORS},
    {.name = "ais_object_post",
     .method = HTTP_POST,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .begin = ais_object_post_begin,
     .summary = "Begins an upload in parts.",
     .query = HTTP_PARAMETERS(COMMON),
     .body = "`{\"action\": \"mpt-upload\"}`",
     .reply = "the id, as text",
     .errors = UPLOAD_ERRORS " overloaded"},
    {.name = "ais_part_put",
     .method = HTTP_PUT,
     .pattern = UPLOAD_PATTERN,
     .nets = NET_PUBLIC,
     .any_type = true,
     .right = RIGHT_WRITE,
     .signs = UPLOAD_SIGNS("PUT"),
     .begin = ais_part_begin,
     .summary = "Stores a part of an upload, in place of an earlier one of its number.",
     .query = HTTP_PARAMETERS(COMMON, UPLOAD, {"partNumber", "1 to 10000"}),
     .body = "the bytes, as of ais_object_put",
     .reply = "200",
     .errors = UPLOAD_ERRORS " too_large no_space"},
    {.name = "ais_upload_complete",
     .method = HTTP_POST,
     .pattern = UPLOAD_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .begin = ais_upload_post_begin,
     .summary = "Completes an upload: its parts become the object.",
     .query = HTTP_PARAMETERS(COMMON, UPLOAD),
     .body = "`{\"action\": \"mpt-complete\", \"value\": [{\"part-number\", \"etag\"}]}`; a part "
             "without `etag` is taken as it is stored",
     .reply = "200",
     .errors = UPLOAD_ERRORS " invalid_part no_space quota_exceeded"},
    {.name = "ais_upload_abort",
     .method = HTTP_DELETE,
     .pattern = UPLOAD_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .begin = ais_upload_delete_begin,
     .summary = "Aborts an upload: its parts are deleted.",
     .query = HTTP_PARAMETERS(COMMON, UPLOAD),
     .body = "`{\"action\": \"mpt-abort\"}`",
     .reply = "204",
     .errors = UPLOAD_ERRORS},
    {.name = "ais_object_copy",
     .method = HTTP_PUT,
     .pattern = AIS_PREFIX AIS_COPIES "/v1/objects/{bucket}/{object...}",
     .nets = NET_PUBLIC,
     .any_type = true,
     .right = RIGHT_READ,
     .begin = ais_object_copy_begin,
     .summary = "Copies an object, by a read and a PUT. Needs the right `write` on the new name.",
     .query =
         HTTP_PARAMETERS(COMMON, {"object_to", "ais/@#/BUCKET/OBJECT"}, {"latest-ver", "false"},
                         {"synchronize", "false"}, {"etl_name", "refused: ETL"},
                         {"etl_args", "refused: ETL"}, {"etl_pipeline", "refused: ETL"}),
     .body = "",
     .reply = "200, when the copy is stored",
     .errors = OBJECT_ERRORS " invalid_argument overloaded no_space quota_exceeded"},
    {.name = "ais_object_patch",
     .method = HTTP_PATCH,
     .pattern = OBJECT_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .begin = ais_object_patch_begin,
     .summary = "Gives an object other user metadata: it is read and stored again.",
     .query = HTTP_PARAMETERS(COMMON, {"set-new-custom", "true: in place of all that it has"}),
     .body = "`{\"value\": {name: text}}`",
     .reply = "200",
     .errors = OBJECT_ERRORS " invalid_json invalid_argument overloaded no_space not_ready"},
    BATCH("ais_batch", AIS_PREFIX "/v1/ml/moss"),
    BATCH("ais_batch_of", AIS_PREFIX "/v1/ml/moss/{bucket}"),
    {.name = "ais_sort_start",
     .method = HTTP_POST,
     .pattern = AIS_PREFIX "/v1/sort",
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_JOBS,
     .begin = ais_sort_begin,
     .summary = "Starts a sort by dSort's request, with the rights of [sort_start](#sort_start).",
     .query = HTTP_PARAMETERS(COMMON),
     .body = "as [sort_start](#sort_start) takes it; also `ekm_sep`, and an `ekm_file` that is the "
             "URL of an object of this cluster",
     .reply = "202 and the sort's id as text",
     .errors = "bucket_not_found invalid_argument not_supported " JOB_ERRORS},
    {.name = "ais_sort_info",
     .method = HTTP_GET,
     .pattern = AIS_PREFIX "/v1/sort",
     .nets = NET_PUBLIC,
     .right = RIGHT_SEE,
     .begin = ais_sort_info_begin,
     .summary = "The progress of a sort at each target.",
     .query = HTTP_PARAMETERS({"uuid", "the sort"}, COMMON),
     .body = "",
     .reply = "`{\"TARGET\": {\"id\", \"src-bck\", \"dst-bck\", \"started_time\", "
              "\"finish_time\", \"loc-objs\", \"loc-bytes\", \"aborted\", \"archived\", "
              "\"Metrics\"}}`; a sort that has failed is aborted, too",
     .errors = "job_not_found invalid_argument"},
    {.name = "ais_sort_abort",
     .method = HTTP_DELETE,
     .pattern = AIS_PREFIX "/v1/sort/abort",
     .nets = NET_PUBLIC,
     .changes = true,
     .right = RIGHT_JOBS,
     .begin = ais_sort_abort_begin,
     .summary = "Aborts a sort and removes its output; one that has ended stays as it is.",
     .query = HTTP_PARAMETERS({"uuid", "the sort"}, COMMON),
     .body = "",
     .reply = "200",
     .errors = "job_not_found invalid_argument"},
    REFUSED("ais_bucket_patch", HTTP_PATCH, BUCKET_PATTERN, RIGHT_ADMIN),
    REFUSED("ais_rest", HTTP_ANY, AIS_PREFIX "/v1/{rest...}", RIGHT_ANY),
    {.name = NULL},
};
