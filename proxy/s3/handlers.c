#include "proxy/s3/handlers.h"

#include "gateway/objects.h"
#include "proxy/primary/proxy.h"
#include "proxy/s3/list_buckets.h"

const struct gateway_handler proxy_s3_handlers[] = {
    {S3_OP_ListBuckets, s3_list_buckets},
    GATEWAY_OBJECT_HANDLERS,
    {.begin = NULL},
};

static void s3_begin(struct http_request *req)
{
    struct proxy *p = proxy_enter_objects(req);
    if (p != NULL)
        gateway_begin(p->gateway, req);
}

const struct http_route s3_routes[] = {
    GATEWAY_ROUTES(s3_begin),
    {.name = NULL},
};
