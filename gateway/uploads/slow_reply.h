/* A reply that may take long, such as that of a completion.  A client waits a minute for the head
 * of a reply, and as long between bytes of its body.  So when the document is not there after
 * `s3_complete_ping`, the reply begins with 200 and the first line of a document.  A blank follows
 * each time that the same time is over again, and then the document.  An error is then an <Error>
 * under 200, as of AWS.
 *
 *     slow_reply_new()  ──▶  slow_reply_end(), once
 *
 * All calls are in the thread of the gateway's loop.  The request may end when the reply has begun:
 * the caller touches it only before the first. */
#pragma once

#include "gateway/gateway.h"

struct buf;
struct slow_reply;

struct slow_reply *slow_reply_new(struct http_request *req, const struct gateway_call *call);
/* Ends the reply, and frees it: an error of S3, or with `why` S3_OK the document. */
void slow_reply_end(struct slow_reply *r, const struct s3_failure *why, const struct buf *document);
