/* Validation as a background job (xaction/): target/validate.h does it.  Its spec is
 * {"checksums": bool, "rate_bytes_s": n}. */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops validate_xaction;
