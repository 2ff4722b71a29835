/* The job `trim_copies` on a target. */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops trim_copies_xaction; /* its host is the struct target */
