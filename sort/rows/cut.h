/* Cutting the order into output shards: pure.
 *
 * Records are added to a shard until their sizes (each record's bytes in the tar: headers,
 * contents, padding) sum up to the limit or more; the shard then ends with that record.  So every
 * shard but the last reaches the limit, and a record larger than the limit has a shard of its own
 * or ends one. The i-th shard has the i-th name of the output template.
 *
 * Where the request gives no size, a bounded template of n names gives it: the total divided by n,
 * rounded up, which needs at most n shards. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/template.h"

struct cut {
    const struct name_template *names;
    uint64_t limit;  /* bytes */
    uint64_t shards; /* begun so far */
    uint64_t bytes;  /* of the present shard */
    bool open;
};

/* `size` is the request's, or 0; `total` the bytes of all records. */
void cut_init(struct cut *c, const struct name_template *names, uint64_t size, uint64_t total);
/* Begins the next shard and appends its name.  E_TEMPLATE_TOO_SMALL where there is none left. */
int cut_begin(struct cut *c, struct buf *name, struct error *err);
/* Adds a record to the present shard; true where the shard ends with it. */
bool cut_add(struct cut *c, uint64_t size);
