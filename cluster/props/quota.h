/* The quota of a bucket: how many objects and bytes it may have.  Pure.
 *
 * Bytes are those of the objects as users see them: copies and slices do not count. */
#pragma once

#include "cluster/props/bucket_props.h"

/* The most buckets of a keepalive, and of its reply: of more, each has so many in turn. */
enum { QUOTAS_AT_ONCE = 1000 };

struct quota_amount {
    uint64_t objects, bytes;
};

/* Both saturate. */
struct quota_amount quota_plus(struct quota_amount a, struct quota_amount b);
struct quota_amount quota_minus(struct quota_amount a, struct quota_amount b);

/* What a write adds: nothing where it replaces an object that is not smaller.  `old_bytes`: of the
 * object that it replaces, if it replaces one. */
struct quota_amount quota_growth(uint64_t bytes, bool replaces, uint64_t old_bytes);

enum quota_verdict { QUOTA_FITS, QUOTA_BYTES_USED, QUOTA_OBJECTS_USED };

/* Does it still fit?  What does not grow fits always. */
enum quota_verdict quota_judge(const struct bucket_props *p, struct quota_amount used,
                               struct quota_amount growth);

/* How much of a quota is used: `near` is 90 % of the bytes or of the objects, `over` all of one. */
enum quota_use { QUOTA_FREE, QUOTA_NEAR, QUOTA_OVER, QUOTA_USES };
enum quota_use quota_use(const struct bucket_props *p, struct quota_amount used);
const char *quota_use_name(enum quota_use use);
/* "95 of 100 objects, 9.5 GiB of 10 GiB": each bound that there is. */
void quota_put_use(const struct bucket_props *p, struct quota_amount used, struct buf *out);
