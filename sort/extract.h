/* Phase 1: this target's shards become its catalog and its rows. */
#pragma once

#include "common/error.h"
#include "sort/catalog.h"
#include "sort/context.h"
#include "sort/rowset.h"

/* Both are filled; `catalog` is empty before. */
int extract_run(struct sort_context *c, struct catalog *catalog, struct rowset *rows,
                struct error *err);
