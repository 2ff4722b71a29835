/* The decoded shards of one target: tars that stand one behind the other in a few files.
 *
 * Each thread that decodes has a pair of files to itself: one in memory, while its share lasts, and
 * a work file.  A shard lies whole in one of them: where the memory runs out in the middle of it,
 * what is there moves to the work file.  The files live as long as the task, for the third phase
 * reads records out of them.
 *
 * A shard that grows out of all proportion (a decompression bomb) is E_SHARD_CORRUPT:
 * CONTENTS_RATIO times its own size, or CONTENTS_FREE bytes where that is more. */
#pragma once

#include <stdint.h>

#include "common/cleanup.h"
#include "sort/base/codec.h"
#include "sort/base/env.h"

#define CONTENTS_RATIO 1000
#define CONTENTS_FREE (UINT64_C(64) * 1024 * 1024)
#define CONTENTS_BUFFER (256 * 1024)

struct contents;

/* `writers`: shards that are decoded at once, at most; `memory`: for all together. */
struct contents *contents_new(const struct sort_env *env, unsigned writers, uint64_t memory);
void contents_free(struct contents *c);
DEFINE_CLEANUP(struct contents, contents_free);
uint64_t contents_spilled(struct contents *c); /* bytes in work files */

/* One shard.  begin, bytes into the sink, then end(): where it lies. */
struct contents_writer;

struct contents_writer *contents_begin(struct contents *c, const char *shard, uint64_t shard_size);
struct sink contents_sink(struct contents_writer *w);
/* The file is the contents' own, as long as they live. */
int contents_end(struct contents_writer *w, int *fd, uint64_t *at, uint64_t *size,
                 struct error *err);
/* It counts as not ended again. */
void contents_forget(struct contents_writer *w);
/* What was not ended is taken back. */
void contents_release(struct contents_writer *w);
