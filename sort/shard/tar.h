/* Reading a tar's headers without touching its contents.
 *
 *     struct tar_scan *s = tar_scan_new(fd, size, "shard-0001.tar");
 *     while ((rc = tar_scan_next(s, &member, err)) > 0)
 *         ... member.path, member.pieces ...
 *
 * A member's pieces are every byte that makes it up, in order: its extended and long-name headers,
 * its header, contents and padding, as ranges of the file; so that copying them copies the member,
 * verbatim.  One thing is changed on the way: a global extended header holds for all that follow
 * it, which the order of a new archive would not respect; it is therefore folded into each member,
 * as an extended header of its own (an inline piece), merged with the one that the member has.
 *
 * Understood: ustar with prefix, the Seventh Edition's form, GNU long names (L, K) and base-256
 * numbers, PAX x and g.  The file must be whole: each header's checksum right, nothing cut short,
 * an end mark (a zero block, nothing but zeros after it; a file of no bytes is an empty archive),
 * or it is E_SHARD_CORRUPT naming shard, offset and reason.  E_SHARD_UNSUPPORTED: sparse files
 * (but see tar_scan_sparse()), GNU's multi-volume and incremental forms, links or directories
 * that state a size, two extended headers (or two long names of a kind) before one member, a
 * global header that sets path, linkpath, size or charset, and what exceeds the limits below.
 *
 * One thread.  Time is about 1 us per member when the headers are in the page cache. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

#define TAR_META_MAX (1024 * 1024) /* bytes of one extended or long-name header */
#define TAR_GLOBAL_MAX 8192        /* bytes of global records in force */
#define TAR_PATH_MAX 65535         /* bytes of a path */
#define TAR_PIECES_MAX 3           /* of one member */

struct tar_piece {
    const void *inline_data; /* these bytes, or NULL: the range of the file at `offset` */
    uint64_t offset;
    uint64_t length;
};

struct tar_member {
    const char *path; /* as it counts, with all extensions applied; not empty */
    size_t path_len;
    const char *link; /* of links */
    size_t link_len;
    char type;       /* '0' file, '1' hard link, '2' symbolic link, '5' directory, … */
    bool sparse;     /* its contents are a map and pieces, not the bytes of the file */
    int64_t mtime_s; /* Unix time */
    uint64_t offset; /* of its first header */
    uint64_t contents_offset, contents_size; /* of the bytes behind the headers, without padding */
    unsigned piece_count;
    struct tar_piece pieces[TAR_PIECES_MAX];
};

struct tar_scan;

/* Borrows fd and copies `shard`, which error messages name. */
struct tar_scan *tar_scan_new(int fd, uint64_t size, const char *shard);
/* check() is asked before each read of the file: what it returns, other than 0, ends the scan.
 * Even what stands behind the end of an archive may be read for minutes. */
void tar_scan_check(struct tar_scan *s, int (*check)(void *ctx, struct error *err), void *ctx);
/* The tar begins at this byte of the file (before the first member is asked for); offsets in
 * pieces and messages count from there. */
void tar_scan_base(struct tar_scan *s, uint64_t base);
/* Sparse members are given, with `sparse` set, and not refused. */
void tar_scan_sparse(struct tar_scan *s);
/* The tar is read by this, in place of its descriptor, which is then -1: exactly len bytes, or an
 * error, E_LENGTH where the tar is shorter. */
typedef int tar_read_fn(void *ctx, void *out, size_t len, uint64_t offset, struct error *err);
void tar_scan_source(struct tar_scan *s, tar_read_fn *read, void *ctx);
void tar_scan_free(struct tar_scan *s);
DEFINE_CLEANUP(struct tar_scan, tar_scan_free);
/* 1 and a member (valid until the next call), 0 at the archive's end, or an error. */
int tar_scan_next(struct tar_scan *s, struct tar_member *m, struct error *err);
