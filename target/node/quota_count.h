/* What this target has of the buckets with a quota, by its indexes.
 *
 * Each object is counted by one target: of one copy by the target that has it, of several copies
 * or slices by the leader of the name.  Bytes are those that users see.  An object that is moved
 * between two mountpaths, or to another target, may be counted twice while it is moved.
 *
 * A count reads each name of the bucket: a second for some millions.  It is left out while the
 * indexes, the map and the mountpaths are as the count before has found them. */
#pragma once

#include <stdatomic.h>

#include "cluster/documents/state.h"
#include "common/error.h"
#include "target/disk/mountpaths.h"
#include "target/node/quota_ledger.h"

/* What a count depends on; all zero equals none. */
struct quota_mark {
    uint64_t roster, map, changes;
};

/* E_MOUNTPATH_DISABLED: a mountpath is not open.  The indexes may have changed when it returns. */
int quota_mark_of(struct mountpaths *m, const struct cluster_state *s, struct quota_mark *out,
                  struct error *err);
bool quota_mark_same(const struct quota_mark *a, const struct quota_mark *b);

/* Blocks; *stop ends it with E_ABORTED.  E_NOT_READY or E_IO: an index cannot be relied on. */
int quota_count(struct mountpaths *m, const struct cluster_state *s, const char *self,
                const struct bucket *b, const atomic_bool *stop, struct quota_amount *out,
                struct error *err);
