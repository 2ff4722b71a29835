#include "gateway/object_attributes.h"

#include "gateway/local.h"
#include "gateway/native_head.h"
#include "gateway/reply.h"
#include "s3/attributes.h"

static void reply_attributes(struct http_request *req, const struct gateway_call *call,
                             const struct forward_reply *r)
{
    _cleanup_buf_ struct buf document = BUF_INIT;
    const char *modified = target_call_header(r->headers, "Last-Modified");
    struct s3_object_sum sum = {.parts = 0};
    struct s3_failure why;
    unsigned asked;
    if (r->err.code != 0) {
        http_reply_error(req, &r->err);
        return;
    }
    if (s3_attributes_asked(&call->head, &asked, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    bool has_sum = native_head_sum(r->headers, &sum.value);
    const struct s3_attributes a = {.etag = native_head_bare_etag(r->headers, http_arena(req)),
                                    .sum = has_sum ? &sum : NULL,
                                    .size = (uint64_t)r->length};
    s3_attributes_document(asked, &a, &document);
    if (modified != NULL)
        http_reply_header(req, "Last-Modified", modified);
    gateway_reply_xml(req, &document);
}

void s3_object_attributes(struct http_request *req, const struct gateway_call *call)
{
    struct native_head head;
    struct s3_failure why;
    unsigned asked;
    if (s3_attributes_asked(&call->head, &asked, &why) != S3_OK ||
        native_head_check_version(call, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    native_head_begin(&head, http_arena(req));
    const struct forward_plan plan = {
        .method = HTTP_HEAD, .headers = head.lines, .reply = reply_attributes};
    local_or_forward(req, call, &plan);
}
