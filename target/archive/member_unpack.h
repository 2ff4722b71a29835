/* Members of archives that are no plain tar: compressed tars, and zips.  No member's bytes lie
 * there as they are: whoever reads one unpacks what is before it in the archive (of a zip that is
 * not compressed as a whole: the member alone).
 *
 * Their table is `packed`: the offset of a member is its turn in the archive, from 0.
 *
 * In a thread that may wait.  Limits: UNARCHIVER_LIMITS (sort/archive/unarchiver.h). */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct archive_source;
struct member_table;

/* Which part of which member. */
struct unpack_part {
    uint64_t turn;
    uint64_t offset, length;
    uint64_t size; /* of the member */
};

typedef int unpack_fn(void *ctx, const void *data, size_t len, struct error *err);

/* All members into the table.  E_NOT_ARCHIVE, E_ARCHIVE_DAMAGED, what go_on() and reading say. */
int member_unpack_scan(struct archive_source *s, struct member_table *t, struct error *err);
/* take() gets exactly these bytes, in pieces; the last ones of a member once its checksum is right,
 * where the archive has one. */
int member_unpack(struct archive_source *s, const struct unpack_part *part, unpack_fn *take,
                  void *ctx, struct error *err);
