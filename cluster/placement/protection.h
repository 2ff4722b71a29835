/* How well the objects of a bucket are kept, as far as the map knows, and why.
 *
 *   one_copy      one copy is asked for: whoever loses a disk loses what is on it
 *   protected     all owners are there, and have what they should
 *   degraded      some have not, and others stand in for them
 *   unavailable   names give 503: only a target that does not answer may have their last version
 *
 * What disks have lost behind the map's back it does not know (`dfcctl object show`, scrub).  Pure.
 */
#pragma once

#include "cluster/documents/state.h"
#include "common/buf.h"

enum protection {
    PROTECTION_ONE_COPY,
    PROTECTION_WHOLE,
    PROTECTION_DEGRADED,
    PROTECTION_UNAVAILABLE,
    PROTECTIONS
};

enum protection protection_of(const struct cluster_state *s, const struct bucket *b);
const char *protection_name(enum protection p);
/* What keeps it from being protected, or at least there: "target 't2' is unreachable; …".  Nothing
 * where all is as asked for. */
void protection_why(const struct cluster_state *s, const struct bucket *b, struct buf *out);
