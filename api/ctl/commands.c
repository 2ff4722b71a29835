/* The command table: a file of rows for each noun, in verbs/. */
#include "api/ctl/commands.h"

#include <limits.h>

#define ANY UINT_MAX
#define FLAGS(...) ((const enum flag_id[]){__VA_ARGS__ __VA_OPT__(, ) F_END})

const struct noun nouns[] = {
    {"cluster", "The whole cluster"},
    {"bucket", "Buckets: names for objects that share properties"},
    {"object", "Objects: bytes with a name"},
    {"sort", "SortDataset: a dataset of tar shards becomes an ordered one"},
    {"job", "Jobs: everything long that the cluster does by itself"},
    {"node", "Proxies and targets"},
    {"config", "Settings of the cluster, parameters of its nodes"},
    {"storage", "The targets' disks, and what is on them"},
    {"help", "Help"},
    {"completion", "Completion for shells"},
    {"version", "Version"},
    {NULL, NULL},
};

const struct command commands[] = {
#include "api/ctl/verbs/cluster.def"
#include "api/ctl/verbs/bucket.def"
#include "api/ctl/verbs/object.def"
#include "api/ctl/verbs/sort.def"
#include "api/ctl/verbs/job.def"
#include "api/ctl/verbs/node.def"
#include "api/ctl/verbs/config.def"
#include "api/ctl/verbs/storage.def"
#include "api/ctl/verbs/itself.def"
    {0},
};
