/* Phase 1: this target's shards become its catalog and its rows. */
#pragma once

#include "common/error.h"
#include "sort/catalog.h"
#include "sort/contents.h"
#include "sort/context.h"
#include "sort/rowset.h"

/* Catalog and rows are filled; `catalog` is empty before.  `contents` takes what has to be decoded: NULL
 * where shards are tars. */
int extract_run(struct sort_context *c, struct catalog *catalog, struct contents *contents,
                struct rowset *rows, struct error *err);
