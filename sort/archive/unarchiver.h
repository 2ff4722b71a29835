/* Reading an archive forward, member by member: libarchive behind two callbacks and limits.
 *
 *     struct unarchiver *u;
 *     rc = unarchiver_open(&source, &limits, &u, err);
 *     while (rc == 0 && (rc = unarchiver_next(u, &m, err)) > 0)
 *         while ((n = unarchiver_read(u, to, sizeof to, err)) > 0) ...
 *
 * It is for archives that the scanners of sort/shard/ do not know, and for readers that need the
 * members of any archive and not their places in it.  The content of the archive decides its
 * format, never its name.  The limits say which formats are read; any of them may be compressed
 * once, by gzip, bzip2, xz, zstd or lz4, where they say so.
 *
 * The bytes of an archive are not trusted.  E_SHARD_CORRUPT: it is damaged, cut short, or exceeds a
 * limit.  E_SHARD_UNSUPPORTED: its format is not known or not allowed, it is compressed twice, or
 * the member is encrypted.  Both name the archive.  What libarchive only warns of is damage, too: a
 * zip's wrong checksum, a name that is no UTF-8 where the format says that it is.  An error of the
 * source is handed on as it is.  After an error only unarchiver_free() may be called.
 *
 * Memory is that of libarchive: a decompressor (of xz 1 GiB at most, of which the bytes touch as
 * much as they fill), for a zip about 200 bytes a member, and what unarchiver_formats.h says of
 * the formats that are not read by default.  An archive cannot make a reader work
 * for long without asking its source, and the source may end the reading.
 *
 * One thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "sort/archive/unarchiver_formats.h"

struct unarchiver_source {
    /* 1..max bytes, 0 at the end, or an error code. */
    ssize_t (*read)(void *ctx, void *to, size_t max, struct error *err);
    /* The next read begins at this byte.  NULL: it is read forward only, and then a zip may hold
     * members whose size is not known before their end. */
    int (*seek)(void *ctx, uint64_t offset, struct error *err);
    void *ctx;
    uint64_t size;    /* bytes; needed where there is seek() */
    const char *what; /* for messages: "object 'b/o'"; outlives the reader */
};

struct unarchiver_limits {
    unsigned formats;     /* of enum unarchiver_format */
    bool compressed;      /* may be */
    uint64_t members;     /* at most */
    uint64_t member_size; /* bytes that are read of one member, at most */
    /* Bytes of contents, at most: so many times what the source gave, or `expand_free` where that
     * is more. */
    uint64_t expand_ratio;
    uint64_t expand_free;
};

/* What dfc allows where nothing else is said. */
#define UNARCHIVER_LIMITS                                                                          \
    {                                                                                              \
        .formats = UNARCHIVER_FORMATS, .compressed = true, .members = 10000000,                    \
        .member_size = UINT64_C(64) << 30, .expand_ratio = 1000, .expand_free = UINT64_C(64) << 20 \
    }

/* Texts are valid until the next call. */
struct unarchiver_member {
    const char *path; /* bytes as they are in the archive; not empty */
    const char *link; /* of links: what they lead to; else "" */
    char type;        /* as in a tar: '0' file, '1' hard link, '2' symbolic link, '5' directory;
                       * '?' for others */
    uint32_t mode;    /* permissions */
    int64_t mtime;    /* seconds; 0 where the archive does not say */
    uint64_t size;    /* bytes of contents; 0 where size_known is false */
    bool size_known;
    bool encrypted; /* it cannot be read */
};

struct unarchiver;

int unarchiver_open(const struct unarchiver_source *source, const struct unarchiver_limits *limits,
                    struct unarchiver **out, struct error *err);
/* 1 and the next member, whether or not the last one was read; 0 at the end; or an error. */
int unarchiver_next(struct unarchiver *u, struct unarchiver_member *m, struct error *err);
/* 1..max bytes of the member's contents (holes as zeros), 0 at their end, or an error. */
ssize_t unarchiver_read(struct unarchiver *u, void *to, size_t max, struct error *err);
/* "ustar", "ZIP 2.0 (deflation)", … : libarchive's words; after the first unarchiver_next(). */
const char *unarchiver_format_name(const struct unarchiver *u);
void unarchiver_free(struct unarchiver *u);
DEFINE_CLEANUP(struct unarchiver, unarchiver_free);
