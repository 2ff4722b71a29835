/* Phase 2: this target's part in the arrangement.  Its own rows and the tables that it receives,
 * one in each round, are one merge; what comes out goes to the target that it sends to, or, at the
 * last target, to the planner. */
#pragma once

#include "common/error.h"
#include "sort/shard/catalog.h"
#include "sort/task/context.h"
#include "sort/rows/orders.h"
#include "sort/rows/rowset.h"

/* `own` and `figures` are filled at the last target alone. */
int exchange_tables(struct sort_context *c, const struct catalog *catalog, struct rowset *rows,
                    struct book *own, struct sort_figures *figures, struct error *err);
