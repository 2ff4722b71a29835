#include "target/s3/handlers.h"

#include "gateway/acl.h"
#include "gateway/bucket_texts.h"
#include "gateway/buckets.h"
#include "gateway/copy.h"
#include "gateway/cors.h"
#include "gateway/delete.h"
#include "gateway/entry.h"
#include "gateway/lists.h"
#include "gateway/object_attributes.h"
#include "gateway/object_tags.h"
#include "gateway/objects.h"
#include "gateway/uploads/upload_complete.h"
#include "gateway/uploads/upload_lists.h"
#include "gateway/uploads/uploads.h"
#include "target/node/target.h"

const struct gateway_handler target_s3_handlers[] = {
    GATEWAY_ACL_HANDLERS,      GATEWAY_ATTRIBUTES_HANDLERS,
    GATEWAY_BUCKET_HANDLERS,   GATEWAY_BUCKET_TEXT_HANDLERS,
    GATEWAY_COPY_HANDLERS,     GATEWAY_CORS_HANDLERS,
    GATEWAY_DELETE_HANDLERS,   GATEWAY_LIST_HANDLERS,
    GATEWAY_OBJECT_HANDLERS,   GATEWAY_OBJECT_TAGS_HANDLERS,
    GATEWAY_UPLOAD_HANDLERS,   GATEWAY_UPLOAD_LIST_HANDLERS,
    GATEWAY_COMPLETE_HANDLERS, {.begin = NULL},
};

static void s3_begin(struct http_request *req)
{
    struct target *t = http_user(req);
    gateway_begin(t->gateway, req);
}

const struct http_route s3_routes[] = {
    GATEWAY_ROUTES(s3_begin),
    {.name = NULL},
};
