/* Validation and scrub as background jobs (xaction/): target/scrub/validate.h does both.
 *
 *   validate   {"checksums": bool, "rate_bytes_s": n}
 *   scrub      {"rate_bytes_s": n}: or without, as the cluster's setting scrub_rate says, also when
 * it is changed meanwhile */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops validate_xaction;
extern const struct xaction_ops scrub_xaction;
