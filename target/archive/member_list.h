/* A page of an archive's members, as JSON.  Pure. */
#pragma once

#include <stddef.h>

#include "common/error.h"
#include "target/format/version.h"

struct buf;
struct member_table;

enum {
    MEMBER_LIST_DEFAULT = 1000,
    MEMBER_LIST_MAX = 10000,
    MEMBER_LIST_BYTES = 4 << 20, /* a page that has so many ends */
};

/* Of `limit` as it stands in the query, or NULL.  E_INVALID. */
int member_list_limit(const char *text, size_t *out, struct error *err);

/* {"version", "count", "members": [{"name", "type", "size", "offset", "modified"}], "truncated"}:
 * those behind `after`, which has any bytes.  A packed archive has no offsets.  A name that is
 * no UTF-8 is given percent-encoded, as "escaped" in place of "name". */
void member_list_put(struct buf *out, const struct member_table *t, const struct version *version,
                     const char *after, size_t limit);
