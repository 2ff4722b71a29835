/* What no image needs: contents, packs and headers that nothing refers to.
 *
 *     images of all buckets → what they refer to → objects of one bucket that are not among them
 *
 * An object counts if its name is one that a burn gives: .dfc-unique/…, .dfc-packs/…, and
 * NAME.<16 hex digits>.isohdr.  Nothing is removed unless every image of the cluster was read, or
 * while an image is burned (lease.h). */
#pragma once

#include "api/dfc.h"

struct collect_options {
    const char *bucket;
    int64_t before_ms; /* objects that were stored later stay: a burn may be on its way */
    bool dry_run;
};

struct collect_result {
    uint64_t images;         /* that were read */
    uint64_t objects, bytes; /* that were removed, or would be */
    uint64_t younger;        /* that nothing needs, and stay */
};

int collect(struct dfc_client *c, const struct collect_options *o, struct collect_result *r,
            struct dfc_error *err);

/* Has a burn given an object this name?  Pure. */
bool collect_is_ours(const char *key);
