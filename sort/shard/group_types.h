/* What a group (group.h) is made of and gives, in memory or with work files (regroup.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "sort/base/env.h"
#include "sort/shard/record.h"

struct group_config {
    const struct sort_env *env; /* work files */
    const char *shard;          /* for messages */
    enum sort_key_rule rule;
    enum sort_policy duplicates;
    uint64_t memory;        /* bytes; not less than GROUP_MEMORY_MIN is used */
    uint64_t record_memory; /* … and, once spilled, of the pieces of one record: E_NOMEM beyond */
    /* An earlier member of this path was dropped.  Once for each. */
    void (*replaced)(void *ctx, const char *path, size_t len);
    /* Asked now and then while group_finish() works: other than 0 ends it. */
    int (*check)(void *ctx, struct error *err);
    void *ctx;
};

#define GROUP_MEMORY_MIN (512 * 1024)

struct group_record {
    const char *name; /* these live until the next call */
    size_t name_len;
    uint64_t size; /* of all pieces */
    const struct record_piece *pieces;
    size_t piece_count;
    const char *inlines; /* what inline pieces are offsets into */
};
