/* The indexes of archives that were read, in memory: by object and version, so that an object that
 * is overwritten never has the members of the one before.
 *
 *   shard_index_get() ── SHARD_READY ──▶ the index
 *                     ── SHARD_MINE ───▶ the caller has it made, and says shard_index_made()
 *                     ── SHARD_WAITS ──▶ fn() comes when whoever makes it has done so
 *
 * One version is read once, however many clients want it.  What is not used goes when the memory
 * is spent, the longest unused first; what is being made counts while it grows.  An index that is
 * larger than all memory is refused; one that is made while others take the memory is refused for
 * now.
 *
 * Any thread; one lock, which is not held while fn() runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "target/format/version.h"

struct member_table;
struct shard;
struct shard_index;

struct shard_key {
    uint64_t bucket_id;
    const char *name;
    struct version version;
    uint64_t size; /* of the object */
};

/* err is NULL with an index, of which fn may take a reference. */
typedef void shard_fn(void *arg, struct shard *s, const struct error *err);
enum shard_answer { SHARD_READY, SHARD_MINE, SHARD_WAITS };

struct shard_index *shard_index_new(uint64_t memory_max);
void shard_index_free(
    struct shard_index *x); /* nobody waits, nothing is being made; NULL is fine */

/* *out is a reference with SHARD_READY and SHARD_MINE; with SHARD_MINE and SHARD_WAITS fn(arg) is
 * called once, at the end. */
enum shard_answer shard_index_get(struct shard_index *x, const struct shard_key *key, shard_fn *fn,
                                  void *arg, struct shard **out);
/* It takes so many bytes by now.  E_ARCHIVE_LIMIT: more than there may be; E_OVERLOAD: others take
 * them just now. */
int shard_index_grow(struct shard_index *x, struct shard *s, uint64_t bytes, struct error *err);
/* Takes the table over, which is finished; or NULL, and err says why.  Whoever waits is told in
 * this thread.  Drops the maker's reference. */
void shard_index_made(struct shard_index *x, struct shard *s, struct member_table *table,
                      const struct error *err);
uint64_t shard_index_bytes(struct shard_index *x);

struct shard *shard_ref(struct shard *s);
void shard_unref(struct shard *s); /* NULL is fine */
bool shard_is(const struct shard *s, const struct shard_key *key);
const struct member_table *shard_members(const struct shard *s);
