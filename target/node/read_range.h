/* Which bytes of an object a GET wants: the header Range (with If-Range), or ?offset=&length=.
 * Pure. */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct read_question {
    const char *range; /* headers, or NULL */
    const char *if_range;
    const char *offset; /* of the query, or NULL */
    const char *length;
    uint64_t size;    /* of the object */
    const char *etag; /* quotes included */
    const char *md5;  /* another tag of it, without quotes; or NULL */
};

struct read_range {
    int status; /* 200 or 206 */
    uint64_t offset;
    uint64_t length;
};

/* E_RANGE where nothing of it lies in the object; E_INVALID for a query that is no number.  The
 * query goes before the header; a header that is no single range means the whole. */
int read_range_pick(const struct read_question *q, struct read_range *out, struct error *err);
