/* A plain tar of the cluster, and behind its last member further ones: the source of its next
 * version.  The tar's own bytes are fetched again while they are sent.
 *
 * Where a tar ends is read from its headers.  A tar without end blocks, and one with more zeros
 * than it needs, end behind their last member.  Anything else is E_SHARD_CORRUPT or
 * E_SHARD_UNSUPPORTED, as tar.h says: compressed tars, zips, tars that are cut short. */
#pragma once

#include "api/ctl/archive/bundle.h"
#include "api/ctl/archive/object_reader.h"

struct appended {
    struct object_reader *reader;
    struct bundle *bundle;
    uint64_t end; /* of the last member of the tar */
    uint64_t at;  /* bytes of the tar that were handed out */
    bool failed;  /* the reader did */
};

/* *end: the first byte behind the last member; name: for messages. */
int appended_find_end(struct object_reader *r, const char *name, uint64_t *end, struct error *err);
/* Borrows reader and bundle. */
struct dfc_source appended_source(struct appended *a);
/* In place of what the library says of a source that failed. */
void appended_failure(const struct appended *a, struct dfc_error *err);
