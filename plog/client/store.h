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
    /* As of struct plog_store, with this struct; NULL: each file reads by GETs. */
    int (*data)(void *ctx, const struct plog_data *data, void *out, size_t len, uint64_t offset,
                struct error *err);
    const void *reader; /* what data() is of */
    bool untyped_heads; /* heads are stored without their content type (plog/flatten.h) */
};

/* Both structs stay the caller's, and the first lives longer. */
struct plog_store bucket_store_of(struct bucket_store *b);
/* What libdfc said, as an error of the engine. */
int bucket_store_error(const struct dfc_error *e, struct error *err);
uint64_t bucket_store_clock(void *ctx); /* milliseconds; also while the machine sleeps */
