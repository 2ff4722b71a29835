/* Whether what a sort has made is what its request asks for: input and output are read again.
 *
 *     input shards ─▶ a task that builds nothing ─▶ the list, in work files: output shards, ─┐
 *                                                   their records in order, digests          │
 *     output shards ─▶ decoded, taken apart, digested ─▶ compared, one by one ◀──────────────┘
 *
 * The list is the task's own (sort_watch), so that every order, format and key map is understood.
 * Shards that stand beside the output and match its template are counted (sort/local/strays.h).
 * Whether the input is still what was sorted is not known here: the caller compares `compared` with
 * what the sort has counted.  That no record was lost, added or changed does not rest on it: the
 * sums of all members' digests on both sides are compared, too.
 *
 * One shard is fetched at a time, into a work file; memory has the task's bound. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "sort/base/env.h"
#include "sort/spec/spec.h"

struct verify_source {
    void *ctx;
    /* As pin_shards(). */
    int (*list)(void *ctx, const struct sort_spec *spec,
                int (*each)(void *arg, const struct sort_shard_info *info, struct error *err),
                void *arg, struct error *err);
    /* The shard's bytes, into an empty file.  E_OBJECT_NOT_FOUND where there is no such output. */
    int (*fetch)(void *ctx, bool output, const char *name, int fd, struct error *err);
    /* The names of the output bucket that begin so. */
    int (*list_outputs)(void *ctx, const char *prefix,
                        int (*each)(void *arg, const char *name, struct error *err), void *arg,
                        struct error *err);
    int (*read_key_map)(void *ctx, const struct sort_spec *spec,
                        int (*feed)(void *arg, const void *data, size_t len, struct error *err),
                        void *arg, struct error *err);
};

struct verify_config {
    struct sort_spec *spec; /* dry_run is set in it */
    const struct verify_source *source;
    const char *work_dir;
    uint64_t memory_bytes;
    uint64_t key_map_bytes;
};

struct verify_result {
    uint64_t shards, records; /* that the request makes of the input as it is now */
    uint64_t compared;        /* of these records: the output has one in the same place */
    bool same_records;        /* the output has these, in whatever order, and no others */
    bool same_order;          /* and each where it belongs */
    char difference[1024];    /* the first; "" */
    uint64_t strays;          /* shards that match the output's template and are not of it */
    char stray[1024];         /* the first; "" */
};

/* 0 with a result; or why the two could not be compared. */
int verify_run(const struct verify_config *config, struct verify_result *result, struct error *err);
