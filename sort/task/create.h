/* Phase 3: building the outputs that stand in this target's book. */
#pragma once

#include "common/error.h"
#include "sort/shard/catalog.h"
#include "sort/task/context.h"
#include "sort/rows/orders.h"
#include "sort/task/resume.h"

/* E_OBJECT_EXISTS where this target, as the owner, has an object of an ordered name. */
int create_check(struct sort_context *c, const struct book *book, struct error *err);
/* Builds all of them that do not stand yet, c->create_threads at a time. */
int create_run(struct sort_context *c, const struct catalog *catalog, const struct book *book,
               struct resume *resume, struct error *err);
