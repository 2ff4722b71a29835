/* The attribute of an inode, and the bytes that an engine keeps of it.  Pure.
 *
 *     0 mode (with type)  4 uid  8 gid  12 rdev     32 bits each, little-endian
 *     16 nlink … 72 parent                          fields of an engine
 *
 * Counters are fields, so that many clients change them without a conflict. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mount/meta/meta.h"

enum {
    ATTR_MODE = 0,
    ATTR_UID = 4,
    ATTR_GID = 8,
    ATTR_RDEV = 12,
    ATTR_NLINK = 16,
    ATTR_ENTRIES = 24, /* of a directory; of others the number of their quota */
    ATTR_LENGTH = 32,
    ATTR_CHANGES = 40, /* writes and truncations of a file; of a directory its quota */
    ATTR_ATIME = 48,   /* ns since 1970; reads do not change it */
    ATTR_MTIME = 56,
    ATTR_CTIME = 64,
    ATTR_PARENT = 72, /* of a file with several names: of one of them */
    ATTR_BYTES = 80,
};

struct attr {
    uint32_t mode, uid, gid, rdev;
    int64_t nlink; /* 0: it has no name any more */
    int64_t entries;
    int64_t length;
    int64_t changes;
    int64_t atime_ns, mtime_ns, ctime_ns;
    uint64_t parent;
    uint64_t quota; /* quotas.h; 0: none */
};

void attr_encode(const struct attr *a, uint8_t out[static ATTR_BYTES]);
/* False: the value is absent, or no attribute. */
bool attr_decode(const struct meta_value *value, struct attr *out);
bool attr_is_directory(const struct attr *a);
/* The place of the quota's number. */
size_t attr_quota_at(uint32_t mode);
/* The mode of a file that was written to by who may not keep its set-id bits. */
uint32_t attr_without_setid(uint32_t mode);

/* The value of a directory's entry: the type (the S_IFMT bits of a mode), and the inode. */
enum { ENTRY_BYTES = 16 };
void entry_encode(uint32_t mode, uint64_t ino, uint8_t out[static ENTRY_BYTES]);
uint32_t entry_type(const struct meta_value *value);
