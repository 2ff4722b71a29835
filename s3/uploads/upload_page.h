/* A page of ListMultipartUploads, out of a bucket's uploads in their order (by key, then by time).
 * Keys that go on behind the delimiter are one prefix of the page.  Pure. */
#pragma once

#include "common/arena.h"
#include "s3/uploads/upload_list.h"

struct s3_upload_page {
    struct s3_listed_upload *uploads;
    size_t upload_count;
    const char **prefixes;
    size_t prefix_count;
    const char *next_key, *next_upload_id; /* NULL: all uploads were added */
    /* its own */
    const struct s3_uploads_asked *asked;
    struct arena *arena;
    const char *last_key, *last_upload_id; /* what the next page begins behind */
};

/* `asked` and the arena outlive the page. */
void s3_upload_page_init(struct s3_upload_page *p, const struct s3_uploads_asked *asked,
                         struct arena *arena);
/* Texts stay the caller's, and outlive the page.  False: the page is full without it. */
bool s3_upload_page_add(struct s3_upload_page *p, const struct s3_listed_upload *upload);
