/* The headers that say what an object is, and on which condition it is stored. */
#pragma once

#include "api/call.h"
#include "api/dfc.h"

int put_describe(struct call *call, const struct dfc_put_options *o, struct dfc_error *err);
int put_conditions(struct call *call, const struct dfc_put_options *o, struct dfc_error *err);
/* The checksum of the body, which is read once more for it: body_rereadable() alone. */
int put_body_sum(struct call *call, struct dfc_error *err);
