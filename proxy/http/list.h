/* GET /v1/objects/{bucket}: the targets' lists as one. */
#pragma once

#include "net/http/server.h"

extern const struct http_route list_routes[];

/* One page of a bucket. */
struct list_request {
    const char *bucket;
    const char *prefix;      /* "" for all */
    const char *delimiter;   /* "" for none */
    const char *start_after; /* "" from the start */
    const char *token;       /* of an earlier page, or NULL */
    uint64_t limit;
    bool partial; /* go on without targets that cannot be asked */
    bool cached;  /* of a bucket with a backend: what is here, alone */
};

#define LIST_REQUEST_DEFAULT(name) \
    ((struct list_request){        \
        .bucket = (name), .prefix = "", .delimiter = "", .start_after = "", .limit = 1000})

/* Checks it and replies with the page, now or later.  From a handler; texts are copied. */
void list_start(struct http_request *req, const struct list_request *r);
