/* Burns and collections do not work at the same time: a burn may use an old content that nothing
 * refers to yet, and a collection would remove it.  Each puts an object while it works:
 *
 *     .dfc-vdisc/burn/HEX/NAME.vdsc    in the bucket of the image NAME.vdsc
 *     .dfc-vdisc/gc/HEX                in the bucket whose contents are removed
 *
 * and then looks for objects of the other kind.  So of two that begin at once, one at least sees
 * the other, and ends.  What was killed leaves its object.  It counts for as long as the caller
 * says, or until the image is there.  So what works for long renews its object, and removes those
 * that do not count any more.  A job has none: the cluster knows it. */
#pragma once

#include <stdatomic.h>

#include "api/dfc.h"

enum { LEASE_RENEW_MS = 5 * 60 * 1000, LEASE_FRESH_MS = 2 * LEASE_RENEW_MS };

struct lease {
    struct dfc_client *client;
    char *bucket, *key;
    atomic_uint_fast64_t renew_ms; /* monotonic: when it is to be put again */
};

/* image: of a burn, its key; NULL: of a collection. */
int lease_take(struct lease *l, struct dfc_client *c, const char *bucket, const char *image,
               struct dfc_error *err);
/* DFC_CONFLICT (`object_reserved`): a collection of this bucket is at work. */
int lease_refuse_collection(struct dfc_client *c, const char *bucket, struct dfc_error *err);
/* The same of a burn into this bucket that has put its lease at `since_ms` or later, or within
 * LEASE_FRESH_MS.  Older leases are removed: a burn that only slept sees that, and fails. */
int lease_refuse_burns(struct dfc_client *c, const char *bucket, int64_t since_ms,
                       struct dfc_error *err);
/* Of zeros: DFC_OK.  DFC_CONFLICT (`object_reserved`): a collection has removed the lease, so it
 * may have removed contents, too. */
int lease_check(const struct lease *l, struct dfc_error *err);
/* The same; then puts the lease again, if LEASE_RENEW_MS have passed.  Any thread, in each loop of
 * the work. */
int lease_renew(struct lease *l, struct dfc_error *err);
void lease_end(struct lease *l); /* of zeros: nothing */
