#include "gateway/objects.h"

#include "gateway/body.h"
#include "gateway/expiration.h"
#include "gateway/local.h"
#include "gateway/native_head.h"
#include "gateway/object_part.h"
#include "gateway/reply.h"
#include "gateway/tags_head.h"

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

/* It is that of all bytes. */
static bool wants_sum(const struct gateway_call *call, const struct forward_reply *r)
{
    return r->status == 200 && native_head_wants_sum(call);
}

static void reply_expiration(struct http_request *req, const struct gateway_call *call,
                             const struct forward_reply *r)
{
    int64_t length = forward_reply_total(r);
    if (r->err.code != 0 || length < 0)
        return;
    const struct expiration_object object = {
        .size = (uint64_t)length, .headers = r->headers, .tags = tags_head_of(r->headers)};
    expiration_reply(req, call, &object);
}

static void reply_read(struct http_request *req, const struct gateway_call *call,
                       const struct forward_reply *r)
{
    if (r->err.code != 0 && r->err.code != E_NOT_MODIFIED) {
        reply_failure(req, r);
        return;
    }
    native_head_reply(req, call, r->headers);
    tags_head_reply_count(req, r->headers);
    reply_expiration(req, call, r);
    if (wants_sum(call, r))
        native_head_reply_sum(req, r->headers);
    if (r->err.code == E_NOT_MODIFIED)
        http_reply_empty(req, 304);
    else
        forward_reply_bytes(req, r->status, r);
}

/* Of a change: parameters that ask for less than the object, and that no operation is told by. */
static enum s3_error check_whole(const struct gateway_call *call, struct s3_failure *why)
{
    if (s3_query_get(&call->s3.query, PART_NUMBER) != NULL)
        return s3_fail(why, S3_NOT_IMPLEMENTED, "This server has no single parts");
    return native_head_check_version(call, why);
}

static enum s3_error check_read(const struct gateway_call *call, struct s3_failure *why)
{
    const char *replaced = native_head_replaced(call);
    enum s3_error e = native_head_check_version(call, why);
    if (e == S3_OK && s3_query_get(&call->s3.query, PART_NUMBER) != NULL)
        e = object_part_check(call, why);
    if (e == S3_OK && call->credential.signing == S3_SIGNED_NOT && replaced != NULL)
        return s3_fail(why, S3_INVALID_REQUEST, "%s needs a signed request", replaced);
    return e;
}

/* The native HEAD knows no Range: then it is a GET whose bytes are not read. */
void s3_get_object(struct http_request *req, const struct gateway_call *call)
{
    struct native_head head;
    struct s3_failure why;
    if (check_read(call, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    if (s3_query_get(&call->s3.query, PART_NUMBER) != NULL) {
        object_part_read(req, call);
        return;
    }
    const char *range = s3_header(&call->head, "Range");
    const enum http_method method = range != NULL ? HTTP_GET : http_method(req);
    native_head_begin(&head, http_arena(req));
    native_head_conditions_of_read(&head, call);
    if (range != NULL)
        native_head_add(&head, "Range", range);
    const struct forward_plan plan = {
        .method = method, .headers = head.lines, .range = range, .reply = reply_read};
    local_or_forward(req, call, &plan);
}

/* --- PutObject -------------------------------------------------------------------------------- */

static void reply_stored(struct http_request *req, const struct gateway_call *call,
                         const struct forward_reply *r)
{
    if (r->err.code != 0) {
        reply_failure(req, r);
        return;
    }
    const struct expiration_object object = {.size = body_length(r->body),
                                             .headers = r->headers,
                                             .tags = s3_header(&call->head, "x-amz-tagging")};
    expiration_reply(req, call, &object);
    reply_etag(req, r);
    native_head_reply_sum(req, r->headers);
    http_reply_empty(req, 200);
}

void s3_put_object(struct http_request *req, const struct gateway_call *call)
{
    struct native_head head;
    struct s3_failure why;
    struct body *body = NULL;
    struct s3_sum_text sum;
    native_head_begin(&head, http_arena(req));
    native_head_conditions_of_write(&head, call);
    if (check_whole(call, &why) != S3_OK || tags_head_add_asked(&head, call, &why) != S3_OK ||
        native_head_content(&head, call, &why) != S3_OK ||
        body_new(call, http_content_length(req), &body, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    const char *md5 = s3_header(&call->head, "Content-MD5"); /* the target compares it */
    if (md5 != NULL)
        native_head_add(&head, "Content-MD5", md5);
    if (body_sum(body, &sum))
        native_head_add_sum(&head, &sum);
    const struct forward_plan plan = {
        .method = HTTP_PUT, .headers = head.lines, .body = body, .reply = reply_stored};
    local_or_forward(req, call, &plan);
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
    local_or_forward(req, call, &plan);
}
