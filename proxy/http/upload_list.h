/* GET /v1/uploads/{bucket}: the targets' lists of open uploads as one.  Every target is asked, for
 * no other one knows its uploads: without its answer there is no page. */
#pragma once

#include "common/buf.h"
#include "common/error.h"
#include "net/http/server.h"

enum { UPLOAD_LIST_MAX = 1000 }; /* uploads of a page */

extern const struct http_route upload_list_routes[];

/* One page of a bucket. */
struct upload_list_request {
    const char *bucket;
    const char *prefix;       /* "" for all */
    const char *after;        /* an object: only uploads behind it; "" from the start */
    const char *after_upload; /* with `after`: only uploads behind this one; "" behind all of its */
    uint64_t limit;           /* 1 to UPLOAD_LIST_MAX */
    /* NULL: the page or the error is the reply.  Else it gets one of both, once, in the list loop's
     * thread or the caller's.  The page is {"uploads": [{"object", "upload", "time"}], "more"}. */
    void (*done)(void *arg, const struct error *err, const struct buf *page);
    void *arg;
};

/* Checks it and replies with the page, now or later, or calls done().  From a handler; texts are
 * copied. */
void upload_list_start(struct http_request *req, const struct upload_list_request *r);
