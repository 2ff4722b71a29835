/* Does an image have the bytes that it was burned with? */
#pragma once

#include "vdisc/client/image.h"

enum verdict {
    VERDICT_EQUAL,
    VERDICT_DIFFERS, /* or is stale */
    VERDICT_UNKNOWN, /* the table has no checksum: there is nothing to compare with */
    VERDICT_FAILED,  /* it could not be read, or is not there */
};

struct verify_extent {
    enum verdict verdict;
    char why[768];
};

struct verify_tally {
    uint64_t extents, equal, differing, unknown, failed;
    uint64_t bytes; /* compared */
};

/* Reads each extent's object, if it has the tag or the bytes of its pin, and compares it with its
 * checksum.  tell() is called for each that is not equal, by one thread at a time; it may be NULL.
 * DFC_OK, or DFC_CANCELLED.  threads: at least 1. */
int vdisc_verify(struct vdisc *v, unsigned threads,
                 void (*tell)(void *context, uint32_t extent, const struct verify_extent *found),
                 void *context, struct verify_tally *tally, struct dfc_error *err);
/* Every extent was compared, there is one, and all are equal. */
bool verify_is_whole(const struct verify_tally *t);
