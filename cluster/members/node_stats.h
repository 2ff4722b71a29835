/* Numbers that a target tells of itself with each keepalive: rows of node_stats.def.  Pure.
 *
 * As JSON an object of numbers.  A reader takes the fields that it knows; one that is not there is
 * 0, so that two releases understand each other. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/error.h"

enum node_stat {
#define STAT(name, how, meaning) STAT_##name,
#include "cluster/members/node_stats.def"
#undef STAT
    NODE_STATS,
};

enum node_stat_how { STAT_COUNT, STAT_LEVEL, STAT_PEAK };

struct node_stat_row {
    const char *name;
    enum node_stat_how how;
};
extern const struct node_stat_row node_stat_rows[NODE_STATS];

struct node_stats {
    uint64_t values[NODE_STATS];
};

json_t *node_stats_to_json(const struct node_stats *s);
/* `doc` NULL: all are 0. */
int node_stats_from_json(json_t *doc, struct node_stats *out, struct error *err);
