/* Grouping the members of one shard outside of memory: what a group does whose table is full
 * (group.h).
 *
 *     members ─▶ by (path, rank) ─▶ by (record, rank) ─▶ by first rank ─▶ records, by position
 *                duplicates go,     pieces are joined
 *                links are checked
 *
 * A member's rank is its number in the shard.  Each of the three is sorted with the help of work
 * files (items.h), and no two things but neighbours are ever looked at together: not the members of
 * one record either.  What is held of a record is its pieces, joined: few where its members stand
 * together.
 *
 * A hard link asks, under the path of its target, after that path's last member.  Where that is not
 * before it, a complaint goes after the link into its record, and ends the work if the link is
 * still there itself. */
#pragma once

#include "common/cleanup.h"
#include "sort/shard/group_types.h"

struct regroup;

int regroup_new(const struct group_config *config, struct regroup **out, struct error *err);
void regroup_free(struct regroup *r);
DEFINE_CLEANUP(struct regroup, regroup_free);
/* In the order of the shard.  `dropped`: another one of its path came later, as has been said
 * already. */
int regroup_add(struct regroup *r, const struct tar_member *m, bool dropped, struct error *err);
int regroup_finish(struct regroup *r, struct error *err);
/* Once finished: as group.h has them. */
uint64_t regroup_count(const struct regroup *r);
uint64_t regroup_spilled(const struct regroup *r);
int regroup_next(struct regroup *r, struct group_record *out, struct error *err);
