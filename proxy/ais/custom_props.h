/* User metadata as the SDK sets it: {"name": "text"}.  Pure. */
#pragma once

#include <jansson.h>

#include "common/error.h"

/* E_INVALID: which pair can be no header of an object, and why. */
int custom_props_check(json_t *props, struct error *err);
