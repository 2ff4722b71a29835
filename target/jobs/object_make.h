/* A new object that this target makes while it sends it to its owner: of unknown length, stored as
 * if a client had put it there, whichever way its bucket keeps objects.  It appears once it is
 * whole; where feed() or the call fails nothing of it stays. */
#pragma once

#include "target/copies/object_copy.h"

struct object_make {
    uint64_t bucket_id;
    const char *name;
    const char *content_type; /* or NULL */
    copier_feed_fn *feed;     /* the bytes */
    void *ctx;
};

/* Waits.  What feed() says; E_BUCKET_NOT_FOUND, E_NO_SPACE, E_QUOTA_EXCEEDED, …;
 * object_copy_may_pass() tells whether it may be otherwise soon. */
int object_make(struct object_copier *c, struct target *t, const struct object_make *m,
                struct error *err);
