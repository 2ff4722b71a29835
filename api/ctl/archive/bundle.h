/* Local files as one archive that is made while it is sent: no temporary file, and the same bytes
 * each time, so that a call may be repeated.
 *
 * A file that changes before its last byte is read ends the call: bundle_failure() says so. */
#pragma once

#include <stddef.h>

#include "api/ctl/archive/shard_plan.h"
#include "api/dfc.h"
#include "common/cleanup.h"
#include "sort/shard/format.h"

struct bundle;

/* Borrows the files. */
struct bundle *bundle_new(const struct shard_format_ops *format, const struct shard_file *files,
                          size_t count);
struct dfc_source bundle_source(struct bundle *b);
/* In place of what the library says of a source that failed. */
void bundle_failure(const struct bundle *b, struct dfc_error *err);
void bundle_free(struct bundle *b);
DEFINE_CLEANUP(struct bundle, bundle_free);
