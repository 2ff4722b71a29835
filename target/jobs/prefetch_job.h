/* The job `prefetch` (xaction/objects_spec.h): objects of a bucket with a backend are brought here
 * before they are asked for, by the targets that own them.  What is here is passed over; where the
 * bucket's `validate` would have a reader ask the backend, the job asks, and brings what has
 * changed. What the backend does not have counts as missing.
 *
 * It begins again after a restart, and then passes over what it has brought. */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops prefetch_xaction;
