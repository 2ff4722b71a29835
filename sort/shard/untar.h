/* Taking a tar apart as it comes, in pieces of any size: what encoders of other formats do with the
 * records that they are given.  Members come with the paths, links, sizes and times that their
 * extended headers say; there are no global headers in records (tar.h folds them in).
 *
 * The bytes have been scanned once already, by this target or a peer; they are checked again, and
 * what is wrong is E_CORRUPT. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "sort/shard/tar_header.h"

struct untar_member {
    const char *path;
    size_t path_len;
    const char *link;
    size_t link_len;
    char type;
    uint32_t mode;
    int64_t mtime; /* seconds, rounded down */
    uint64_t size; /* of the contents that follow */
};

struct untar_events {
    int (*begin)(void *ctx, const struct untar_member *m, struct error *err); /* m: only then */
    int (*data)(void *ctx, const void *data, size_t len, struct error *err);
    int (*end)(void *ctx, struct error *err);
};

struct untar {
    const struct untar_events *events;
    void *ctx;
    unsigned char block[TAR_BLOCK];
    size_t used;      /* of the block */
    char meta;        /* the kind of header whose contents come: 'x', 'L', 'K', or 0 */
    uint64_t left;    /* bytes of contents */
    uint64_t padding; /* bytes behind them */
    bool in_member;
    bool has_pax, has_name, has_link;
    struct buf pax, name, link;
};

void untar_init(struct untar *u, const struct untar_events *events, void *ctx);
void untar_done(struct untar *u);
int untar_write(struct untar *u, const void *tar, size_t len, struct error *err);
/* Contents whose events nobody needs are passed over without being read: how many of the next `max`
 * bytes must not be written.  Zero where headers come. */
uint64_t untar_skip(struct untar *u, uint64_t max);
bool untar_between(const struct untar *u); /* members: nothing is half done */
