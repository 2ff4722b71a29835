/* The first phase where the inputs are no archives (spec->plain_objects): each is one record, of
 * which everything is known without opening it. */
#pragma once

#include "common/error.h"
#include "sort/rows/rowset.h"
#include "sort/shard/catalog.h"
#include "sort/task/context.h"

struct extract_objects {
    struct sort_context *c;
    struct catalog *catalog;
    struct rowset *rows;
    const uint32_t *fresh; /* the numbers in the catalog of the `count` that have no record yet */
    uint32_t count;
};

int extract_objects(const struct extract_objects *x, struct error *err);
