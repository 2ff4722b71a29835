/* Who looks on at a sort (task.h), and its phases. */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "common/template.h"

enum sort_phase { SORT_QUEUED, SORT_EXTRACTING, SORT_MERGING, SORT_CREATING, SORT_DONE };

/* Somebody who looks on.  Each may end the task by an error. */
struct group_record;
struct sort_watch {
    void *ctx;
    /* A record was read; its pieces lie in the tar that begins at byte `at` of the file.  By the
     * threads that extract; positions of one shard ascend. */
    int (*read)(void *ctx, uint32_t shard, uint32_t position, const struct group_record *r, int fd,
                uint64_t at, struct error *err);
    /* The last target's order: this is the next record of that output shard.  Shards are numbered
     * by their owner. */
    int (*ordered)(void *ctx, const char *output, const char *name, size_t name_len, uint32_t shard,
                   uint32_t position, struct error *err);
    /* The last target, for each template that is used: its first `count` names are the output
     * shards. */
    int (*used)(void *ctx, const struct name_template *t, uint64_t count, struct error *err);
};
