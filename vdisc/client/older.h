/* The entries of an image, for another burn: with the objects that have their contents. */
#pragma once

#include "vdisc/client/image.h"
#include "vdisc/plan.h"

struct older_entry {
    struct burn_row row;   /* its checksum: of a file whose SHA-256 is known */
    struct plan_part part; /* of a file */
};

struct older;

/* Of an open image, which must outlive it.  DFC_CORRUPT: a file is not within one extent.
 * E_UNSUPPORTED: an object is none of this cluster. */
int older_load(const struct vdisc *v, struct older **older, struct dfc_error *err);
size_t older_count(const struct older *o);
const struct older_entry *older_entry(const struct older *o, size_t i); /* in the order of a walk */
/* By path ("a/b"); by content, whichever file of it.  NULL: there is none. */
const struct older_entry *older_find(const struct older *o, const char *path);
const struct older_entry *older_find_content(const struct older *o, uint64_t size,
                                             const uint8_t sha256[static 32]);
void older_free(struct older *o);
DEFINE_CLEANUP(struct older, older_free);
