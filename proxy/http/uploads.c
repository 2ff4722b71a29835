#include "proxy/http/uploads.h"

#include <string.h>

#include "access/guard.h"
#include "access/redirect_proof.h"
#include "cluster/members/location.h"
#include "cluster/placement/owners.h"
#include "cluster/placement/upload_node.h"
#include "proxy/http/relay.h"
#include "proxy/primary/proxy.h"

static int find_leader(const struct cluster_state *s, const struct bucket *b, const char *object,
                       const struct node **out, struct error *err)
{
    struct owners o;
    int code = owners_find_acting(s, b, object, &o, err);
    if (code == 0)
        *out = o.acting;
    return code;
}

static int find_target(struct http_request *req, const struct upload_send *how,
                       const struct cluster_state *s, const struct bucket **b,
                       const struct node **out, struct error *err)
{
    const char *bucket = http_path_param(req, "bucket");
    const char *object = http_path_param(req, "object");
    int code = bucket_name_check(bucket, err);
    if (code == 0)
        code = object_name_check(object, strlen(object), err);
    if (code != 0)
        return code;
    *b = bmd_bucket(&s->bmd, bucket);
    if (*b == NULL)
        return proxy_no_bucket(http_user(req), bucket, err);
    return how->upload != NULL ? upload_node_find(&s->smap, how->upload, out, err)
                               : find_leader(s, *b, object, out, err);
}

void upload_send(struct http_request *req, const struct upload_send *how)
{
    struct proxy *p = http_user(req);
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    const struct bucket *b = NULL;
    const struct node *n = NULL;
    struct error err = ERROR_INIT;
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    if (find_target(req, how, s, &b, &n, &err) != 0) {
        http_reply_error(req, &err);
        return;
    }
    location_put_upload_target(&url, n, s, b, http_path_param(req, "object"), how->raw_query);
    if (how->document != NULL) {
        relay_document(p, req, how->method, buf_str(&url), how->document);
    } else if (how->streams) {
        relay_start(p, req, buf_str(&url));
    } else {
        guard_put_proof(req, b->id, NULL, &url);
        http_reply_redirect(req, buf_str(&url));
    }
}

static void upload_begin(struct http_request *req)
{
    const char *upload = http_query(req, "upload");
    struct error err;
    if (proxy_enter_objects(req) == NULL)
        return;
    if (upload == NULL && http_method(req) != HTTP_POST) {
        error_set(&err, E_INVALID,
                  "parameter 'upload' is missing: it must be the id that POST /v1/uploads/%s/… "
                  "has replied",
                  http_path_param(req, "bucket"));
        http_reply_error(req, &err);
        return;
    }
    const struct upload_send how = {.method = http_method(req),
                                    .upload = upload,
                                    .raw_query = http_raw_query(req),
                                    .streams = relay_is_wanted(req)};
    upload_send(req, &how);
}

#define UPLOAD_PATTERN "/v1/uploads/{bucket}/{object...}"
#define UPLOAD                                      \
    {                                               \
        "upload", "the id that upload_post replied" \
    }
#define REDIRECT                               \
    {                                          \
        "redirect", "never: through the proxy" \
    }
#define UPLOAD_ERRORS                                                             \
    "invalid_argument invalid_name bucket_not_found no_targets node_unreachable " \
    "mountpath_disabled not_found"

const struct http_route upload_routes[] = {
    {.name = "upload_post",
     .method = HTTP_POST,
     .pattern = UPLOAD_PATTERN,
     .nets = NET_PUBLIC,
     .any_type = true,
     .right = RIGHT_WRITE,
     .signs = UPLOAD_SIGNS("POST"),
     .begin = upload_begin,
     .summary = "Begins an upload in parts; with `upload`: completes it.",
     .query = HTTP_PARAMETERS({"upload", "the id; absent: begin"}, REDIRECT),
     .body = "of a begin none, with the headers of PUT of an object; of a completion "
             "`[{\"part\": number, \"tag\": its MD5}]`, with `If-Match` or `If-None-Match`",
     .reply = "307 to the target; its reply is 201 `{\"upload\": id}`, or `{\"version\", \"size\", "
              "\"tag\"}`",
     .errors = UPLOAD_ERRORS " precondition_failed overloaded"},
    {.name = "upload_part",
     .method = HTTP_PUT,
     .pattern = UPLOAD_PATTERN,
     .nets = NET_PUBLIC,
     .any_type = true,
     .right = RIGHT_WRITE,
     .signs = UPLOAD_SIGNS("PUT"),
     .begin = upload_begin,
     .summary = "Stores a part of an upload, in place of an earlier one of its number.",
     .query = HTTP_PARAMETERS(UPLOAD, {"part", "1 to 10000"}, REDIRECT),
     .body = "the bytes, at most 5 GiB; perhaps `Content-MD5`",
     .reply = "307 to the target; its reply is `{\"part\", \"tag\": MD5, \"size\": bytes}`",
     .errors = UPLOAD_ERRORS " checksum_mismatch too_large no_space"},
    {.name = "upload_parts",
     .method = HTTP_GET,
     .pattern = UPLOAD_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .signs = UPLOAD_SIGNS("GET"),
     .begin = upload_begin,
     .summary = "Lists the parts of an upload, by number.",
     .query = HTTP_PARAMETERS(UPLOAD, {"after", "number: only later parts"},
                              {"limit", "1 to 1000 (default 1000)"}, REDIRECT),
     .body = "",
     .reply = "307 to the target; its reply is `{\"parts\": [{\"part\", \"tag\", \"size\", "
              "\"time\"}], \"more\": boolean}`",
     .errors = UPLOAD_ERRORS},
    {.name = "upload_abort",
     .method = HTTP_DELETE,
     .pattern = UPLOAD_PATTERN,
     .nets = NET_PUBLIC,
     .right = RIGHT_WRITE,
     .signs = UPLOAD_SIGNS("DELETE"),
     .begin = upload_begin,
     .summary = "Aborts an upload: its parts are deleted.",
     .query = HTTP_PARAMETERS(UPLOAD, REDIRECT),
     .body = "",
     .reply = "307 to the target; its reply is 204",
     .errors = UPLOAD_ERRORS},
    {.name = NULL},
};
