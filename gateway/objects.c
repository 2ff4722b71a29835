#include "gateway/objects.h"

#include <string.h>

#include "gateway/body.h"
#include "gateway/forward.h"
#include "gateway/native_head.h"
#include "gateway/reply.h"
#include "net/http/pipe.h"

static void reply_etag(struct http_request *req, const struct forward_reply *r)
{
    _cleanup_buf_ struct buf tag = BUF_INIT;
    native_head_put_etag(r->headers, &tag);
    if (tag.len > 0)
        http_reply_header(req, "ETag", buf_str(&tag));
}

static void reply_failure(struct http_request *req, const struct forward_reply *r)
{
    const char *range = target_call_header(r->headers, "Content-Range");
    if (r->err.code == E_RANGE && range != NULL)
        http_reply_header(req, "Content-Range", range);
    http_reply_error(req, &r->err);
}

/* --- GetObject, HeadObject -------------------------------------------------------------------- */

static void reply_read(struct http_request *req, const struct gateway_call *call,
                       const struct forward_reply *r)
{
    if (r->err.code != 0 && r->err.code != E_NOT_MODIFIED) {
        reply_failure(req, r);
        return;
    }
    native_head_reply(req, call, r->headers);
    if (r->err.code == E_NOT_MODIFIED)
        http_reply_empty(req, 304);
    else
        http_reply_pipe(req, r->status, r->length, r->download);
}

/* Parameters that ask for less than the object, and that no operation is told by. */
static enum s3_error check_whole(const struct gateway_call *call, struct s3_failure *why)
{
    const struct s3_query *q = &call->s3.query;
    const char *version = s3_query_get(q, "versionId");
    if (version != NULL && strcmp(version, "null") != 0)
        return s3_fail(why, S3_INVALID_ARGUMENT, "The only version of an object is 'null'");
    if (s3_query_get(q, "partNumber") != NULL)
        return s3_fail(why, S3_NOT_IMPLEMENTED, "This server has no single parts");
    return S3_OK;
}

static enum s3_error check_read(const struct gateway_call *call, struct s3_failure *why)
{
    const char *replaced = native_head_replaced(call);
    enum s3_error e = check_whole(call, why);
    if (e == S3_OK && call->credential.signing == S3_SIGNED_NOT && replaced != NULL)
        return s3_fail(why, S3_INVALID_REQUEST, "%s needs a signed request", replaced);
    return e;
}

void s3_get_object(struct http_request *req, const struct gateway_call *call)
{
    struct native_head head;
    struct s3_failure why;
    if (check_read(call, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    const char *range = s3_header(&call->head, "Range");
    if (s3_header(&call->head, "If-Range") != NULL || http_method(req) == HTTP_HEAD)
        range = NULL;
    native_head_begin(&head, http_arena(req));
    native_head_conditions_of_read(&head, call);
    if (range != NULL)
        native_head_add(&head, "Range", range);
    const struct forward_plan plan = {
        .method = http_method(req), .headers = head.lines, .range = range, .reply = reply_read};
    forward_start(req, call, &plan);
}

/* --- PutObject -------------------------------------------------------------------------------- */

static void reply_stored(struct http_request *req, const struct gateway_call *call,
                         const struct forward_reply *r)
{
    (void)call;
    if (r->err.code != 0) {
        reply_failure(req, r);
        return;
    }
    reply_etag(req, r);
    http_reply_empty(req, 200);
}

void s3_put_object(struct http_request *req, const struct gateway_call *call)
{
    struct native_head head;
    struct s3_failure why;
    struct body *body = NULL;
    native_head_begin(&head, http_arena(req));
    native_head_conditions_of_write(&head, call);
    if (check_whole(call, &why) != S3_OK || native_head_check_kept(call, &why) != S3_OK ||
        native_head_content(&head, call, &why) != S3_OK ||
        body_new(call, http_content_length(req), &body, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    const char *md5 = s3_header(&call->head, "Content-MD5"); /* the target compares it */
    if (md5 != NULL)
        native_head_add(&head, "Content-MD5", md5);
    const struct forward_plan plan = {
        .method = HTTP_PUT, .headers = head.lines, .body = body, .reply = reply_stored};
    forward_start(req, call, &plan);
}

/* --- DeleteObject ----------------------------------------------------------------------------- */

/* What is not there is deleted already. */
static void reply_deleted(struct http_request *req, const struct gateway_call *call,
                          const struct forward_reply *r)
{
    bool conditional = s3_header(&call->head, "If-Match") != NULL;
    if (r->err.code != 0 && (r->err.code != E_OBJECT_NOT_FOUND || conditional))
        reply_failure(req, r);
    else
        http_reply_empty(req, 204);
}

void s3_delete_object(struct http_request *req, const struct gateway_call *call)
{
    struct native_head head;
    struct s3_failure why;
    if (check_whole(call, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    native_head_begin(&head, http_arena(req));
    native_head_conditions_of_delete(&head, call);
    const struct forward_plan plan = {
        .method = HTTP_DELETE, .headers = head.lines, .reply = reply_deleted};
    forward_start(req, call, &plan);
}
