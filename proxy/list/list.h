/* A page of a bucket's objects: the targets' lists as one. */
#pragma once

#include "common/buf.h"
#include "common/error.h"
#include "net/http/server.h"

/* One page of a bucket. */
struct list_request {
    const char *bucket;
    const char *prefix;      /* "" for all */
    const char *delimiter;   /* "" for none */
    const char *start_after; /* "" from the start */
    const char *token;       /* of an earlier page, or NULL */
    uint64_t limit;
    bool partial;  /* go on without targets that cannot be asked */
    bool cached;   /* of a bucket with a backend: what is here, alone */
    bool internal; /* also names that begin with ".dfc-", as with a prefix that begins so */
    bool members;  /* of archives are shown, too: heeded by list_archives_start() */
    /* NULL: the page or the error is the reply.  Else it gets one of both, once, in a loop's thread
     * or the caller's. */
    void (*done)(void *arg, const struct error *err, const struct buf *page);
    void *arg;
};

#define LIST_REQUEST_DEFAULT(name) \
    ((struct list_request){        \
        .bucket = (name), .prefix = "", .delimiter = "", .start_after = "", .limit = 1000})

/* A text that names begin with or are behind: of at most the bytes of a name.  E_INVALID says which
 * parameter it is. */
int list_check_text(const char *text, const char *name, struct error *err);

/* Names, texts and the limit.  E_INVALID, E_NAME. */
int list_check(const struct list_request *r, struct error *err);
/* Checks it and replies with the page, now or later, or calls done().  From a handler, or later
 * while the request waits; texts are copied. */
void list_start(struct http_request *req, const struct list_request *r);
