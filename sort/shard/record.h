/* Grouping: the members of one shard become records.
 *
 * A record is every member whose path has the same key: the directory and the basename up to its
 * first dot (or its last one, by the key rule); bytes, nothing normalised.  The members need not
 * stand together.  A record's position is that of its key's first appearance in the shard; its
 * members keep their order.
 *
 * A path that comes twice in a shard is a duplicate: an error, or, where the policy says so, the
 * later member is kept and the earlier dropped, as extracting the tar would do.  A hard link must
 * come after its target, in the same record: links do not reach across records, which may part. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "sort/spec/spec.h"
#include "sort/shard/tar.h"

/* A run of a record's bytes: a range of the shard, or (inline) of the table's own bytes. */
struct record_piece {
    bool is_inline;
    uint64_t offset;
    uint64_t length;
};

/* Joins a range to the last one, if that one is not before `from`, and continues in this. */
void record_pieces_append(struct buf *out, size_t from, const struct record_piece *next);

struct record_table;

/* `memory_max`: bytes that one shard's table may take (E_NOMEM beyond). */
struct record_table *record_table_new(const char *shard, enum sort_key_rule rule,
                                      enum sort_policy duplicates, size_t memory_max);
void record_table_free(struct record_table *t);
DEFINE_CLEANUP(struct record_table, record_table_free);
/* One member, not a directory.  E_DUPLICATE_RECORD where the policy says abort.  *replaced: an
 * earlier member of this path was dropped. */
int record_table_add(struct record_table *t, const struct tar_member *m, bool *replaced,
                     struct error *err);
/* After the last one.  E_SHARD_UNSUPPORTED for a hard link whose target is elsewhere. */
int record_table_finish(struct record_table *t, struct error *err);

/* It takes no more: the next add may fail.  group.h says what then. */
bool record_table_full(const struct record_table *t);
/* All members, in the order in which they were added.  True where this one was dropped; pieces and
 * texts are the table's, and the offset is not kept. */
size_t record_table_members(const struct record_table *t);
bool record_table_member(const struct record_table *t, size_t n, struct tar_member *out);

size_t record_table_count(const struct record_table *t);
const char *record_table_name(const struct record_table *t, size_t record, size_t *len);
/* Appends the record's pieces, neighbours joined, as an array of struct record_piece. */
void record_table_pieces(const struct record_table *t, size_t record, struct buf *out);
const struct buf *record_table_inline(const struct record_table *t);

int record_link_error(const char *shard, const char *path, size_t path_len, const char *link,
                      size_t link_len, struct error *err); /* E_SHARD_UNSUPPORTED, in words */

size_t record_key_len(const char *path, size_t len, enum sort_key_rule rule);
