/* The job `mirror` on a target. */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops mirror_xaction; /* its host is the struct target */
