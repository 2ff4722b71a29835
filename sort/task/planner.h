/* The last target's work: the merged order is cut into output shards, each is given to a builder,
 * and everybody gets the orders.  The order is never held: rows stream in, orders stream out, and
 * the records of the one shard that is being cut stand in a blob. */
#pragma once

#include "common/error.h"
#include "sort/task/context.h"
#include "sort/rows/dict.h"
#include "sort/rows/orders.h"
#include "sort/rows/rows.h"
#include "sort/rows/table.h"

/* `whole`: of the merged table.  `own` gets this target's orders. */
int planner_run(struct sort_context *c, struct row_source rows, const struct dict *dict,
                const struct table_head *whole, struct book *own, struct sort_figures *figures,
                struct error *err);
