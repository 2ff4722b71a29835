/* One pass over the headers of an archive: what the index of its members is made of
 * (member_table.h).  Of a plain tar the headers alone are read; anything else is unpacked
 * (member_unpack.h). */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "target/store/object.h"

struct member_table;
struct reader;
struct target;

struct member_scan {
    struct target *target;
    uint64_t bucket_id;
    const struct object *object; /* open, with the size that users see */
    struct reader *reader;       /* of its disk */
    /* Asked now and then: may the table take so many bytes (0: as many as before)?  What it
     * returns, other than 0, ends the scan. */
    int (*grow)(void *ctx, uint64_t bytes, struct error *err);
    void *ctx;
};

/* In a thread that may wait.  E_NOT_ARCHIVE, E_ARCHIVE_DAMAGED, what grow() says, and what reading
 * says. */
int member_scan(const struct member_scan *what, struct member_table **out, struct error *err);
