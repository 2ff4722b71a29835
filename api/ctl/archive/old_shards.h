/* Shards that an earlier, larger folder left behind: STEM-000005.tar and so on, where the folder
 * makes five shards now.  A reader of all of them would get samples of two folders.
 *
 *     struct old_shards o = {.bucket = "b", .stem = "train/d-", .extension = ".tar", .from = 5};
 *     rc = old_shards_each(client, &o, note, context, &err);
 *
 * Shards of another extension are another dataset. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/dfc.h"

struct old_shards {
    const char *bucket;
    const char *stem;
    const char *extension;
    uint64_t from; /* the least number that the folder no longer makes */
};

/* The number of a shard's name, as put makes names: six digits or more.  False: it is none. */
bool old_shards_number(const struct old_shards *o, const char *name, uint64_t *number);
/* Calls each(), which returns false to end, with the names in their order.  0 or a negative result:
 * the names cannot be listed, or not all of them. */
int old_shards_each(struct dfc_client *client, const struct old_shards *o,
                    bool (*each)(void *context, const char *name), void *context,
                    struct dfc_error *err);
