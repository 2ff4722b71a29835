#include "gateway/reply.h"

#include "common/buf.h"
#include "common/cleanup.h"

static int put_error(const struct http_request *req, const struct error *err, struct buf *out)
{
    struct s3_failure why;
    /* The message names the native entity tag, which clients of S3 do not see. */
    if (err->code == E_PRECONDITION)
        s3_fail(&why, S3_PRECONDITION_FAILED, NULL);
    else
        s3_fail(&why, s3_error_of(err->code), "%s", err->message);
    s3_error_document(&why, http_path(req), http_request_id(req), out);
    return s3_error_status(why.error);
}

const struct http_error_form gateway_error_form = {
    .content_type = "application/xml", .id_header = "x-amz-request-id", .put = put_error};

void gateway_fail(struct http_request *req, const struct s3_failure *why)
{
    _cleanup_(buf_done)
    struct buf document = BUF_INIT;
    s3_error_document(why, http_path(req), http_request_id(req), &document);
    if (why->error == S3_SLOW_DOWN)
        http_reply_header(req, "Retry-After", "1");
    http_reply_data(req, s3_error_status(why->error), gateway_error_form.content_type,
                    document.data, document.len);
}

void gateway_reply_xml(struct http_request *req, const struct buf *document)
{
    http_reply_data(req, 200, "application/xml", document->data, document->len);
}
