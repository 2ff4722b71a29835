/* The job `delete` on a target: tombstones for the objects that it means, many at once, so that
 * they share the waits for the disk.  What was written under a later state of the cluster than the
 * job was made from stays.  Doing it again finds what was deleted gone. */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops delete_xaction; /* its host is struct target */
