/* Configurations that no bucket can have, and that AWS describes by a document: versioning,
 * logging, notification, payment, acceleration.  ops.def has those that AWS describes by an error.
 * Pure. */
#pragma once

#include <stdbool.h>

#include "common/buf.h"
#include "s3/op.h"

/* The document of a bucket without the configuration.  False: `op` reads none of these. */
bool s3_none_document(enum s3_op_id op, struct buf *out);
