/* The job `copy` on a target: each object that it means and that is here goes to the owner of its
 * new name (object_copy.h), several at once.  What has the same bytes already is passed over, so
 * that doing it again costs little; an owner that does not answer is waited for. */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops copy_xaction; /* its host is struct target */
