/* The end of a plain tar: where the next member can be put.
 *
 * A tar ends behind its last member; end blocks, and zeros behind them, are left aside, and may be
 * missing.  What is damaged, cut short or no plain tar is refused as tar.h says. */
#pragma once

#include "sort/shard/tar.h"

/* What it returns, other than 0, ends the search. */
typedef int tar_member_fn(void *ctx, const struct tar_member *m, struct error *err);

struct tar_source {
    tar_read_fn *read; /* exactly len bytes; asked for no byte behind `size` */
    void *ctx;
    uint64_t size;
    const char *shard; /* for messages */
};

/* *end: the first byte behind the last member.  each(): of every member, in their order. */
int tar_tail_find(const struct tar_source *in, tar_member_fn *each, void *ctx, uint64_t *end,
                  struct error *err);
