/* Is what is kept of a backend's object still what the backend has?  What decides it, without
 * sockets: when it has to be asked, and what its answer means.
 *
 *   validate        asked
 *   never           not at all
 *   open            at every read
 *   interval        where it was neither stored nor asked about within the interval
 *
 * The question is a HEAD with If-None-Match (the entity tag that was kept), or If-Modified-Since
 * where the backend gives no tags that tell bytes apart.  Of an object that has neither, nothing
 * can be said, and it is read again. */
#pragma once

#include <stdbool.h>

#include "cluster/documents/state.h"
#include "target/format/attr.h"
#include "target/backend/backend.h"

enum freshness {
    FRESH,   /* the backend has these bytes */
    CHANGED, /* it has others */
    GONE,    /* it has none of this name */
    UNKNOWN, /* it did not answer: what is here may be served, if the bucket's `stale` says so */
    REFUSED, /* it answered, and will not say: the error is the client's */
};

/* What is kept of how the backend named the bytes; texts are the attribute's. */
struct kept {
    const char *etag;   /* strong, or NULL */
    int64_t modified_s; /* where there is no tag; 0: neither */
};

struct kept fresh_kept(const struct attr *a);
/* asked_ms: when it was asked about last, 0: never, as far as is known. */
bool fresh_is_due(const struct bucket_props *p, const struct attr *a, int64_t asked_ms,
                  int64_t now_ms);
/* code: of exchange_begin(), with facts where it is 0. */
enum freshness fresh_verdict(const struct kept *kept, int code, const struct backend_facts *facts);
