/* The plog that a command names. */
#pragma once

#include "api/ctl/ctl.h"
#include "api/ctl/names/name.h"

/* What "dfc://BUCKET/NAME" names, for object_name_done() in any case.  An exit code, as of all that
 * follow; a failure was reported. */
int ctl_plog_name(struct ctl *ctl, const char *name, struct object_name *out);
int ctl_plog_fail(const struct ctl *ctl, const struct dfc_error *err, const char *verb,
                  const char *name);
