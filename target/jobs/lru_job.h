/* The job `lru` on a target: what the evictor (evict.h) does where a disk is too full, at once and
 * down to space_low from wherever it is. */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops lru_xaction; /* its host is struct target */
