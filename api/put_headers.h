/* The headers that say what an object is, and on which condition it is stored. */
#pragma once

#include "api/call.h"
#include "api/dfc.h"

int put_describe(struct call *call, const struct dfc_put_options *o, struct dfc_error *err);
int put_conditions(struct call *call, const struct dfc_put_options *o, struct dfc_error *err);
