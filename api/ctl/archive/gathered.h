/* The local files that become members of one archive: a directory's by their path below it, other
 * files by the name behind the last slash.
 *
 *     struct gathered g = {.tally = tally};
 *     gathered_add(&g, "./labels"); ...
 *     gathered_end(&g);                    // sorted; names that are there twice are failures
 *     ... g.plan.files, g.bytes ...
 *     gathered_done(&g);
 *
 * What cannot be a member is a failure of the tally. */
#pragma once

#include "api/ctl/archive/shard_plan.h"
#include "api/ctl/tally.h"

struct gathered {
    struct tally *tally;
    struct shard_plan plan; /* files alone: there are no records here */
    uint64_t bytes;         /* of their contents */
};

void gathered_add(struct gathered *g, const char *source);
void gathered_end(struct gathered *g);
void gathered_done(struct gathered *g);
