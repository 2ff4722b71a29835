/* Building what stands in the book beside the shards: indexes.  Owner, name and fate are as a
 * shard's; so nobody waits for a shard to be built, and whatever holds for outputs holds for them.
 */
#pragma once

#include "common/error.h"
#include "sort/shard/gather.h"
#include "sort/task/window.h"

/* `order`: behind the head that is `s`. */
int create_dali(struct order_shard *s, struct decoder *order, struct window *w, struct gather *g,
                struct error *err);
int create_text(struct order_shard *s, struct decoder *order, struct sort_context *c,
                struct error *err);
