/* The flags that get and cat have in common. */
#pragma once

#include "api/ctl/ctl.h"

int get_flags_read(const struct ctl *ctl, const struct args *a, struct dfc_get_options *out);
