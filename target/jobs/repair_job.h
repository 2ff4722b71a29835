/* The job `repair` on a target. */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops repair_xaction; /* its host is the struct target */
