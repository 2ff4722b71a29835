/* Members of archives that are no plain tar: compressed tars, zips, cpio.  No member's bytes lie
 * there as they are: whoever reads one unpacks what is before it in the archive (of a zip that is
 * not compressed as a whole: the member alone).
 *
 * Their table is `packed`: the offset of a member is its turn in the archive, from 0.
 *
 * In a thread that may wait.  Limits: UNARCHIVER_LIMITS (sort/archive/unarchiver.h), with the
 * formats of the parameter archive_formats. */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "sort/archive/unarchiver.h"
#include "target/archive/member_table.h"

struct archive_source;

/* Which part of which member. */
struct unpack_part {
    uint64_t turn;
    uint64_t offset, length;
    uint64_t size; /* of the member */
};

typedef int unpack_fn(void *ctx, const void *data, size_t len, struct error *err);

/* fn() for each member in its turn, which may read it by unarchiver_read(), until it fails. */
typedef int unpack_each_fn(void *ctx, struct unarchiver *archive, const struct unarchiver_member *m,
                           uint64_t turn, struct error *err);
int member_unpack_each(struct archive_source *s, unpack_each_fn *fn, void *ctx, struct error *err);
enum member_kind member_unpack_kind(const struct unarchiver_member *m);
/* All members into the table.  E_NOT_ARCHIVE, E_ARCHIVE_DAMAGED, what go_on() and reading say. */
int member_unpack_scan(struct archive_source *s, struct member_table *t, struct error *err);
/* What is announced must be able to come: E_ARCHIVE_LIMIT where the limits end the reading of so
 * many bytes before their end, as of a sparse file that is nothing but a hole. */
int member_unpack_check_size(uint64_t archive_size, uint64_t size, struct error *err);
/* take() gets exactly these bytes, in pieces; the last ones of a member once its checksum is right,
 * where the archive has one. */
int member_unpack(struct archive_source *s, const struct unpack_part *part, unpack_fn *take,
                  void *ctx, struct error *err);
/* Several whole members, of which the turns ascend, in one pass; begin(ctx, i) comes before the
 * bytes of parts[i]. */
int member_unpack_parts(struct archive_source *s, const struct unpack_part *parts, size_t count,
                        int (*begin)(void *ctx, size_t i, struct error *err), unpack_fn *take,
                        void *ctx, struct error *err);
