/* What the lifecycle document of a bucket says of its objects here (s3/lifecycle.h has the rules).
 *
 * A document is read once, and is compared with the bucket's present one when a decision counts:
 * rules that were changed meanwhile delete nothing any more.
 *
 * Rules expire objects of buckets without a backend.  A backend has rules of its own, and only it
 * has all objects.
 *
 * Pure but for the clock of expiry_now().  Any thread. */
#pragma once

#include "cluster/documents/state.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "s3/lifecycle.h"
#include "target/format/attr.h"
#include "target/index/record.h"

struct expiry;

/* *out NULL: no rule of the bucket expires objects here.  E_CORRUPT: the document cannot be read,
 * as one of a newer release. */
int expiry_read(const struct bucket *b, struct expiry **out, struct error *err);
void expiry_free(struct expiry *x); /* NULL is fine */
DEFINE_CLEANUP(struct expiry, expiry_free);

/* Are these the bucket's rules still? */
bool expiry_is_of(const struct expiry *x, const struct bucket *b);
/* The time, and the length of a day (setting lifecycle_day). */
struct s3_lifecycle_now expiry_now(const struct cluster_state *s);

/* May the object expire, as far as the index tells?  Tags are not in the index. */
bool expiry_may_take(const struct expiry *x, const char *name, const struct index_record *record,
                     const struct s3_lifecycle_now *now);
/* Has a rule a filter by tags?  Then attributes say more than the index. */
bool expiry_reads_tags(const struct expiry *x);
/* Does it expire?  By its attribute, which has the tags. */
bool expiry_takes(const struct expiry *x, const char *name, const struct attr *a,
                  const struct s3_lifecycle_now *now);

/* Must an upload in parts be aborted that began then?  Reads the document; one that cannot be read
 * aborts nothing. */
bool expiry_aborts(const struct bucket *b, const char *name, int64_t begun_ms,
                   const struct s3_lifecycle_now *now);
