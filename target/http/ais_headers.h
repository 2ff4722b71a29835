/* The headers of an object that AIStore's SDK reads (ais/dialect.h). */
#pragma once

#include "target/format/attr.h"
#include "target/node/call.h"

/* Beside the native ones, which stay. */
void ais_headers_put(const struct object_call *call, const struct attr *a);
