/* Grouping all members of one shard, however many, within a bound of memory.
 *
 * A shard whose record table fits is grouped in memory (record.h says by which rules); one that is
 * too large with the help of work files (regroup.h).  The result is the same; where a shard has
 * several faults, another one of them may be the one that is reported.
 *
 * Of a single record the pieces are held together: those of members that do not stand next to each
 * other cannot spill. */
#pragma once

#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "sort/shard/group_types.h"

struct group;

struct group *group_new(const struct group_config *config);
void group_free(struct group *g);
DEFINE_CLEANUP(struct group, group_free);
/* One member, not a directory. */
int group_add(struct group *g, const struct tar_member *m, struct error *err);
/* After the last one: duplicates, links and counts are checked. */
int group_finish(struct group *g, struct error *err);
uint64_t group_count(const struct group *g);   /* records, once finished */
uint64_t group_spilled(const struct group *g); /* bytes in work files */
/* The next record, in the order of positions: 1, 0 at the end, or an error. */
int group_next(struct group *g, struct group_record *out, struct error *err);
