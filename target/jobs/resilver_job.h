/* Resilver as a background job (xaction/xaction.h): resilver.h in a job's thread.  There is nothing
 * to make visible or to undo, and a job that is begun again finds most of it done. */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops resilver_xaction; /* its host is the struct target */
