/* Replies to S3 requests. */
#pragma once

#include "net/http/handler.h"
#include "s3/error.h"

/* For http_server_config.error_form: S3's <Error> document for codes of common/error.def. */
extern const struct http_error_form gateway_error_form;

/* An error of S3 with its document. */
void gateway_fail(struct http_request *req, const struct s3_failure *why);
/* A document of S3. */
void gateway_reply_xml(struct http_request *req, const struct buf *document);
