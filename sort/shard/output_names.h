/* The names of what a sort makes: the output shards, and what the request wants beside them.  An
 * index ends with .idx or .json, which no shard does, so that they never meet.  Pure. */
#pragma once

#include <stdbool.h>

#include "common/buf.h"
#include "sort/spec/spec.h"

/* Appends the name of an output shard's index for DALI: "out-000001.tar" has "out-000001.idx". */
void output_dali_name(const char *shard, struct buf *out);
/* Is it one of a template's shards, or such a shard's index? */
bool output_is_named(const struct sort_spec *spec, const char *name);
const char *output_content_type(const struct sort_spec *spec, const char *name);
