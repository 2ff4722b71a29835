/* The plog_store of a bucket: its calls are those of libdfc.  Any number of threads may use it. */
#pragma once

#include "api/dfc.h"
#include "plog/store.h"

struct sender;

struct bucket_store {
    struct dfc_client *client;
    const char *bucket;
    unsigned parallel;     /* ends of segments that are read at once, at least 1 */
    struct sender *sender; /* NULL: segments are stored by the caller's thread */
    bool untyped_heads;    /* heads are stored without their content type (plog/flatten.h) */
};

/* Both structs stay the caller's, and the first lives longer. */
struct plog_store bucket_store_of(struct bucket_store *b);
uint64_t bucket_store_clock(void *ctx); /* milliseconds; also while the machine sleeps */
