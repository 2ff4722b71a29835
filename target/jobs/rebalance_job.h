/* The job `rebalance` on a target. */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops rebalance_xaction; /* its host is the struct target */
