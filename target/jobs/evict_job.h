/* The job `evict` (xaction/objects_spec.h): what is kept here of a backend's objects is let go of,
 * and makes room; the backend's are not touched, and the next reader has them fetched again.  What
 * is not here counts as missing.  While mountpaths are not settled nothing can go: the job waits.
 */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops evict_xaction;
