/* The job `download` (xaction/download_spec.h): http(s) URLs become objects of a bucket, each
 * fetched and stored by the target that owns its name, as a cold read would be (cold.h): whole and
 * checked, or not at all, and what breaks off goes on where it ended.
 *
 * What was put under the name since the job began stays, which is also how the job passes over what
 * it has done before a restart.  What is older and came from the same URL is asked about first
 * (304: it is passed over); any other is replaced.  A URL that leads nowhere counts as missing. */
#pragma once

#include "xaction/xaction.h"

extern const struct xaction_ops download_xaction;
