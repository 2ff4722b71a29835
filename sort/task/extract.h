/* Phase 1: this target's shards become its catalog and its rows. */
#pragma once

#include "common/error.h"
#include "sort/shard/catalog.h"
#include "sort/shard/contents.h"
#include "sort/task/context.h"
#include "sort/rows/rowset.h"

/* Catalog and rows are filled; `contents` takes what has to be decoded: NULL where shards are tars.
 * since: shards that became this target's when the job went on without fewer targets are in them
 * already. After an error they are of no use any more. */
int extract_run(struct sort_context *c, unsigned since, struct catalog *catalog,
                struct contents *contents, struct rowset *rows, struct error *err);
