/* The table of docs/reference/s3.md: what a daemon does with each operation of S3. */
#pragma once

#include "common/buf.h"
#include "gateway/gateway.h"

/* Appends a Markdown table with a row for each operation of s3/ops.def.  `handlers`: a daemon's
 * table.  The last column has "done", or the error that is always the reply. */
void gateway_operations_page(const struct gateway_handler *handlers, struct buf *out);
