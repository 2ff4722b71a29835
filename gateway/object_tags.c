#include "gateway/object_tags.h"

#include "gateway/collect.h"
#include "gateway/copy.h"
#include "gateway/local.h"
#include "gateway/reply.h"
#include "gateway/tags_head.h"

enum { BODY_MAX = 64 * 1024 };

/* --- reading ---------------------------------------------------------------------------------- */

static void reply_tags(struct http_request *req, const struct gateway_call *call,
                       const struct forward_reply *r)
{
    _cleanup_buf_ struct buf document = BUF_INIT;
    struct s3_tags tags;
    (void)call;
    if (r->err.code != 0) {
        http_reply_error(req, &r->err);
        return;
    }
    tags_head_read(r->headers, http_arena(req), &tags);
    s3_tags_document(&tags, &document);
    gateway_reply_xml(req, &document);
}

void s3_get_object_tags(struct http_request *req, const struct gateway_call *call)
{
    struct native_head head;
    struct s3_failure why;
    if (native_head_check_version(call, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    native_head_begin(&head, http_arena(req));
    const struct forward_plan plan = {
        .method = HTTP_HEAD, .headers = head.lines, .reply = reply_tags};
    local_or_forward(req, call, &plan);
}

/* --- changing --------------------------------------------------------------------------------- */

static void reply_put(struct http_request *req)
{
    http_reply_empty(req, 200);
}

static void reply_deleted(struct http_request *req)
{
    http_reply_empty(req, 204);
}

static void put(struct http_request *req, const struct gateway_call *call, const char *data,
                size_t len)
{
    struct s3_failure why;
    struct s3_tags tags;
    if (native_head_check_version(call, &why) != S3_OK ||
        s3_tags_parse(data, len, S3_OBJECT_TAGS_MAX, http_arena(req), &tags, &why) != S3_OK)
        gateway_fail(req, &why);
    else
        copy_with_tags(req, call, &tags, reply_put);
}

void s3_put_object_tags(struct http_request *req, const struct gateway_call *call)
{
    gateway_collect(req, call, BODY_MAX, put);
}

static enum s3_error check_deletion(struct http_request *req, const struct gateway_call *call,
                                    struct s3_failure *why)
{
    if (http_content_length(req) != 0)
        return s3_fail(why, S3_INVALID_REQUEST, "A deletion of tags has no body");
    return native_head_check_version(call, why);
}

void s3_delete_object_tags(struct http_request *req, const struct gateway_call *call)
{
    static const struct s3_tags none = {.count = 0};
    struct s3_failure why;
    if (check_deletion(req, call, &why) == S3_OK)
        copy_with_tags(req, call, &none, reply_deleted);
    else
        gateway_fail(req, &why);
}
