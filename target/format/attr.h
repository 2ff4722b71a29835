/* What is known of an object besides its bytes: the extended attribute `user.dfc` of its file.
 *
 * Layout (all numbers little-endian; varint = LEB128, at most 10 bytes):
 *
 *   u8      format, 1
 *   u8      flags (enum attr_flags)
 *   u8      checksum type
 *   varint  size, version.term, version.map, version.counter, modified_ms
 *   bytes   the checksum's digest
 *   text\0  name
 *   text\0  content type     with ATTR_HAS_CONTENT_TYPE
 *   text\0  job id           with ATTR_HAS_JOB
 *   text\0 text\0 … \0       with ATTR_HAS_META: pairs of name and value, then an empty name
 *   text\0  manifest         with ATTR_HAS_SLICES: ec_manifest.h
 *   u32     XXH3-64 of all that stands before, its lower half
 *
 * It is small on purpose: ext4 keeps what fits in the rest of a 256-byte inode there (68 bytes:
 * names up to about 35), anything longer costs a block of its own and a second read.  Everything
 * together must fit in that one block, hence the limits below.
 *
 * A decoded attr borrows its texts from the encoded bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/checksum.h"
#include "common/error.h"
#include "target/format/version.h"

struct buf;

#define ATTR_XATTR "user.dfc"

enum {
    ATTR_NAME_MAX = 1024,
    ATTR_CONTENT_TYPE_MAX = 255,
    ATTR_JOB_MAX = 64,
    ATTR_META_MAX = 2048,                    /* names, values and their terminators */
    ATTR_META_PAIRS_MAX = ATTR_META_MAX / 3, /* "n", "" and their terminators */
    ATTR_SLICES_MAX = 255,
    /* 3 fixed bytes, 5 varints, digest, 5 texts, the end of the pairs, the check. */
    ATTR_ENCODED_MAX = 3 + 5 * 10 + CHECKSUM_MAX + ATTR_NAME_MAX + 1 + ATTR_CONTENT_TYPE_MAX + 1 +
                       ATTR_JOB_MAX + 1 + ATTR_META_MAX + 1 + ATTR_SLICES_MAX + 1 + 4,
};

enum attr_flags {
    ATTR_TOMBSTONE = 1,        /* the object was deleted by this version; the file is empty */
    ATTR_DURABLE = 2,          /* the bytes had reached the disk before the file got its name */
    ATTR_OVER_TOMBSTONE = 4,   /* with a job: the name held a tombstone before */
    ATTR_HAS_CONTENT_TYPE = 8, /* these four are the codec's own */
    ATTR_HAS_JOB = 16,
    ATTR_HAS_META = 32,
    ATTR_HAS_SLICES = 64,
    ATTR_PENDING = 128, /* a caller's, too: the bucket's backend does not have this yet (back.h) */
};

/* A pair of `meta`: S3's entity tag, which stays with the bytes wherever they are copied.
 *
 *   32 hex digits       the MD5 of the bytes: of what was written with a spec's `md5`
 *   the same, "-N"      of an object that was uploaded in N parts: the MD5 of the parts' MD5s */
#define ATTR_MD5 "entity-md5"

/* A pair of `meta`: the object's tags, as the header x-amz-tagging has them (attr_tags.h). */
#define ATTR_TAGS "entity-tags"
/* A pair of `meta` of an object that was uploaded in parts: their sizes (s3/uploads/part_sizes.h).
 */
#define ATTR_PARTS "entity-parts"
/* The same: their checksums in S3 (s3/uploads/part_sums.h). */
#define ATTR_PART_SUMS "entity-part-sums"

struct attr {
    unsigned flags; /* those of enum attr_flags that are not the codec's own */
    const char *name;
    uint64_t size;
    struct version version;
    struct checksum_value checksum;
    int64_t modified_ms;      /* wall time, >= 0 */
    const char *content_type; /* NULL: none was given */
    const char *job;          /* NULL, or the job whose commit makes the object visible */
    const char *meta;         /* "name\0value\0…", or NULL */
    size_t meta_len;
    const char *slices; /* NULL, or the file is empty, and the object in slices: their manifest */
};

static inline bool attr_is_tombstone(const struct attr *a)
{
    return (a->flags & ATTR_TOMBSTONE) != 0;
}

static inline bool attr_is_pending(const struct attr *a)
{
    return (a->flags & ATTR_PENDING) != 0;
}

/* The encoded length; E_INVALID or E_NAME where a text breaks its limit. */
int attr_encode(const struct attr *a, unsigned char out[static ATTR_ENCODED_MAX], size_t *len,
                struct error *err);
/* E_CORRUPT where the bytes are not what attr_encode() makes; E_UNSUPPORTED where a newer release
 * wrote them.  Whatever it accepts encodes to the same bytes. */
int attr_decode(const unsigned char *data, size_t len, struct attr *a, struct error *err);
/* Of a copy of what was decoded: its texts borrow from the copy of the bytes, no longer from them.
 */
void attr_rebase(struct attr *a, const unsigned char *from, const unsigned char *to);

/* The pairs: *pos starts at 0; false at the end. */
bool attr_meta_next(const struct attr *a, size_t *pos, const char **name, const char **value);
/* The value of the first pair of this name, or NULL. */
const char *attr_meta_find(const struct attr *a, const char *name);
/* One more pair: `meta` becomes `out`, which may be where it is.  False: there is no room. */
bool attr_meta_extend(struct attr *a, const char *name, const char *value,
                      char out[static ATTR_META_MAX]);
/* One more pair, to texts that become an attribute's `meta`. */
void attr_meta_add(struct buf *meta, const char *name, const char *value);
