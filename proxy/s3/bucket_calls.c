#include "proxy/s3/bucket_calls.h"

#include "cluster/props/bucket_props.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "proxy/list/list.h"
#include "proxy/http/upload_list.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/recovery.h"
#include "proxy/s3/bucket_delete.h"

/* The state in which nodes find what has changed. */
static void reply_state(struct http_request *req)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    _cleanup_free_ char *text =
        xprintf("%llu.%llu", (unsigned long long)s->term, (unsigned long long)s->version);
    _cleanup_json_ json_t *doc = json_pack("{s:s}", "state", text);
    http_reply_json(req, 200, doc);
}

static void done(struct http_request *req, const char *event, const struct error *err)
{
    if (err != NULL) {
        proxy_reply_error(req, err);
        return;
    }
    log_info(event, lstr("bucket", http_path_param(req, "bucket")),
             lstr("user", http_actor(req)->name), lstr("request", http_request_id(req)));
    reply_state(req);
}

static void create_done(void *arg, const struct error *err)
{
    done(arg, "bucket made", err);
}

static void destroy_done(struct http_request *req, const struct error *err)
{
    done(req, "bucket destroyed", err);
}

static void create_begin(struct http_request *req)
{
    struct proxy *p = http_user(req);
    const struct bucket_props props = BUCKET_PROPS_DEFAULT;
    struct error err = ERROR_INIT;
    if (proxy_passed_to_primary(req))
        return;
    if (recovery_check_new(p, &err) != 0) {
        http_reply_error(req, &err);
        return;
    }
    const struct command cmd = {.kind = CMD_BUCKET_CREATE,
                                .name = http_path_param(req, "bucket"),
                                .props = &props,
                                .actor = http_actor(req)->id,
                                .wall_ms = clock_wall_ms()};
    proxy_commit_settled(p, &cmd, create_done, req);
}

static void destroy_begin(struct http_request *req)
{
    const char *id = http_query(req, "id");
    uint64_t bucket_id;
    struct error err = ERROR_INIT;
    if (id == NULL || parse_u64(id, &bucket_id, NULL) != 0 || bucket_id == 0) {
        error_set(&err, E_INVALID, "parameter 'id' must be the bucket's id");
        http_reply_error(req, &err);
        return;
    }
    if (!proxy_passed_to_primary(req))
        bucket_delete(req, bucket_id, destroy_done);
}

/* --- documents that a bucket keeps ------------------------------------------------------------ */

static void texts_done(void *arg, const struct error *err)
{
    done(arg, "bucket's document changed", err);
}

/* `value`: taken over. */
static void change_text(struct http_request *req, json_t *value)
{
    const char *which = http_path_param(req, "text");
    _cleanup_json_ json_t *patch = json_pack("{s:o}", which, value);
    const struct command cmd = {
        .kind = CMD_BUCKET_TEXTS, .name = http_path_param(req, "bucket"), .patch = patch};
    proxy_commit_settled(http_user(req), &cmd, texts_done, req);
}

static void text_body(struct http_request *req, const char *data, size_t len)
{
    struct error err = ERROR_INIT;
    json_t *value = json_stringn(data, len);
    if (value != NULL) {
        change_text(req, value);
        return;
    }
    error_set(&err, E_INVALID, "the document is no UTF-8 text");
    http_reply_error(req, &err);
}

static bool is_refused(struct http_request *req)
{
    const char *which = http_path_param(req, "text");
    struct error err = ERROR_INIT;
    if (bucket_text_find(which) != BUCKET_TEXTS)
        return false;
    error_set(&err, E_NOT_FOUND, "a bucket keeps no document '%.80s'", which);
    http_reply_error(req, &err);
    return true;
}

static void put_text_begin(struct http_request *req)
{
    if (!is_refused(req) && !proxy_passed_to_primary(req))
        http_collect_body(req, BUCKET_TEXT_MAX, text_body);
}

static void delete_text_begin(struct http_request *req)
{
    if (!is_refused(req) && !proxy_passed_to_primary(req))
        change_text(req, json_null());
}

/* --- reading ---------------------------------------------------------------------------------- */

static void state_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter_objects(req);
    if (p == NULL)
        return;
    struct error err = ERROR_INIT;
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const char *name = http_path_param(req, "bucket");
    if (bmd_bucket(&s->bmd, name) != NULL)
        reply_state(req);
    else if (proxy_no_bucket(p, name, &err) != 0)
        http_reply_error(req, &err);
}

static void query_text(const struct http_request *req, const char *name, const char **out)
{
    const char *value = http_query(req, name);
    if (value != NULL)
        *out = value;
}

static void list_begin(struct http_request *req)
{
    if (proxy_enter_objects(req) == NULL)
        return;
    struct list_request r = LIST_REQUEST_DEFAULT(http_path_param(req, "bucket"));
    struct error err = ERROR_INIT;
    const char *limit = http_query(req, "limit");
    query_text(req, "prefix", &r.prefix);
    query_text(req, "delimiter", &r.delimiter);
    query_text(req, "start_after", &r.start_after);
    query_text(req, "token", &r.token);
    if (limit != NULL && parse_u64(limit, &r.limit, &err) != 0)
        http_reply_error(req, &err);
    else
        list_start(req, &r);
}

static void list_uploads_begin(struct http_request *req)
{
    if (proxy_enter_objects(req) == NULL)
        return;
    struct upload_list_request r = {.bucket = http_path_param(req, "bucket"),
                                    .prefix = "",
                                    .after = "",
                                    .after_upload = "",
                                    .limit = UPLOAD_LIST_MAX};
    struct error err = ERROR_INIT;
    const char *limit = http_query(req, "limit");
    query_text(req, "prefix", &r.prefix);
    query_text(req, "after", &r.after);
    query_text(req, "after_upload", &r.after_upload);
    if (limit != NULL && parse_u64(limit, &r.limit, &err) != 0)
        http_reply_error(req, &err);
    else
        upload_list_start(req, &r);
}

#define PATTERN "/v1/s3/{bucket}"

const struct http_route bucket_calls[] = {
    {.name = "s3_bucket_create",
     .method = HTTP_POST,
     .pattern = PATTERN,
     .nets = NET_CONTROL,
     .changes = true,
     .right = RIGHT_NODE,
     .begin = create_begin,
     .summary = "S3's CreateBucket, for the user of the call.",
     .body = "",
     .reply = "200 `{\"state\": \"1.17\"}`: the cluster state that has it",
     .errors = "bucket_exists invalid_name"},
    {.name = "s3_bucket_destroy",
     .method = HTTP_DELETE,
     .pattern = PATTERN,
     .nets = NET_CONTROL,
     .changes = true,
     .right = RIGHT_NODE,
     .begin = destroy_begin,
     .summary = "S3's DeleteBucket: of an empty bucket, which takes no objects meanwhile.",
     .query = HTTP_PARAMETERS({"id", "of the bucket"}),
     .body = "",
     .reply = "200 `{\"state\": \"1.18\"}`: the cluster state that has it no more",
     .errors = "bucket_not_empty bucket_not_found invalid_argument node_unreachable not_ready"},
    {.name = "s3_bucket_text_put",
     .method = HTTP_PUT,
     .pattern = PATTERN "/texts/{text}",
     .nets = NET_CONTROL,
     .changes = true,
     .any_type = true,
     .right = RIGHT_NODE,
     .begin = put_text_begin,
     .summary = "S3's tags, CORS or lifecycle of a bucket: `tags`, `cors`, `lifecycle`.",
     .body = "the document, at most 16 KiB",
     .reply = "200 `{\"state\": \"1.18\"}`: the cluster state that has it",
     .errors = "bucket_not_found not_found invalid_argument overloaded"},
    {.name = "s3_bucket_text_delete",
     .method = HTTP_DELETE,
     .pattern = PATTERN "/texts/{text}",
     .nets = NET_CONTROL,
     .changes = true,
     .right = RIGHT_NODE,
     .begin = delete_text_begin,
     .summary = "Takes such a document away.",
     .body = "",
     .reply = "200 `{\"state\": \"1.18\"}`: the cluster state that has it no more",
     .errors = "bucket_not_found not_found"},
    {.name = "s3_bucket_state",
     .method = HTTP_GET,
     .pattern = PATTERN "/state",
     .nets = NET_CONTROL,
     .right = RIGHT_NODE,
     .begin = state_begin,
     .summary = "A cluster state that has the bucket.",
     .body = "",
     .reply = "200 `{\"state\": \"1.17\"}`",
     .errors = "bucket_not_found not_ready"},
    {.name = "s3_list",
     .method = HTTP_GET,
     .pattern = PATTERN,
     .nets = NET_CONTROL,
     .right = RIGHT_NODE,
     .begin = list_begin,
     .summary = "A page of a bucket, for S3's lists.",
     .query = HTTP_PARAMETERS({"prefix", "text"}, {"delimiter", "text"}, {"start_after", "name"},
                              {"token", "next of the page before"}, {"limit", "1 to 10000"}),
     .body = "",
     .reply = "as of the native list",
     .errors = "bucket_not_found node_unreachable no_targets"},
    {.name = "s3_list_uploads",
     .method = HTTP_GET,
     .pattern = PATTERN "/uploads",
     .nets = NET_CONTROL,
     .right = RIGHT_NODE,
     .begin = list_uploads_begin,
     .summary = "A page of a bucket's uploads in parts, for S3's lists.",
     .query = HTTP_PARAMETERS({"prefix", "text"}, {"after", "object"}, {"after_upload", "id"},
                              {"limit", "1 to 1000"}),
     .body = "",
     .reply = "as of the native list",
     .errors = "bucket_not_found node_unreachable no_targets invalid_argument"},
    {.name = NULL},
};
