/* Slices that a transaction names, or names no longer: how many entries each has, the bytes in use,
 * and the queue of slices to be deleted. */
#pragma once

#include "mount/volume/slices.h"
#include "mount/volume/txn.h"

struct release {
    uint64_t slice;
    uint32_t size;
    /* Entries.  made: of a slice that is new in this transaction; shared: more of one that an entry
     * names, which the transaction expects. */
    int64_t made, dropped, shared;
};

struct releases {
    struct release *items; /* a slice may be in several, until they are merged */
    size_t count, room;
};

void releases_done(struct releases *r);
void releases_make(struct releases *r, uint64_t slice, uint32_t size);
void releases_share(struct releases *r, const struct slice_list *entries);
void releases_drop(struct releases *r, const struct slice_list *entries);
/* The steps.  0 or -errno. */
int releases_apply(struct releases *r, struct txn *t);
/* Bytes of the slices that are new. */
int64_t releases_new_bytes(struct releases *r);
