/* x-amz-expiration of replies: when a lifecycle rule expires the object.  Nothing where no rule of
 * the bucket does, and no work where it has no rules.  The node's own copy of the rules decides. */
#pragma once

#include "gateway/target_call.h"
#include "s3/tags.h"

struct gateway_call;

struct expiration_object {
    uint64_t size;
    const struct target_call_header *headers; /* of the native reply: Last-Modified */
    const char *tags;                         /* as x-amz-tagging has them; "" or NULL: none */
};

void expiration_reply(struct http_request *req, const struct gateway_call *call,
                      const struct expiration_object *object);
