/* The list of what a sort has pinned (sort/pins.h), as it stands in the job's directory:
 *
 *     magic      "DFCPINS4"
 *     series     8 bytes: in the names of its pins
 *     left       how many targets the job went on without when it was written
 *     shards     each: 1, place, size, missing, left when it became this target's, stamp (8 bytes),
 *                length of the name, name, when it was written in seconds (8 bytes), the checksum:
 *                its type, its bytes
 *     end        0
 *     checksum   8 bytes
 */
#pragma once

#include "common/buf.h"
#include "sort/base/env.h"

struct encoder;

struct pinned_head {
    uint64_t series;
    unsigned left;
};

struct pinned_shard {
    struct sort_shard_info info;
    uint64_t stamp; /* 0: it is missing */
};

int pinned_put_head(struct encoder *e, const struct pinned_head *head, struct error *err);
int pinned_put_shard(struct encoder *e, const struct pinned_shard *shard, struct error *err);
int pinned_put_end(struct encoder *e, struct error *err);

/* All of it, to the checksum; the head is there before the first shard.  E_CORRUPT. */
typedef int pinned_fn(void *arg, const struct pinned_shard *shard, struct error *err);
int pinned_each(const struct buf *text, struct pinned_head *head, pinned_fn *each, void *arg,
                struct error *err);
