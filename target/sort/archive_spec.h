/* The sort that a job `archive` is (docs/design/sort-engine.md, "Objects as inputs").  Pure. */
#pragma once

#include "sort/spec/spec.h"

struct objects_spec;

/* `bucket` has the objects.  E_INVALID where the format cannot be written; E_SPEC. */
int archive_sort_spec(const struct objects_spec *o, const char *bucket, struct sort_spec **out,
                      struct error *err);
