/* What the index keeps of one object: the value beside its name.  Layout, as in attr.h:
 *
 *   u8      format, 1
 *   u8      flags: 1 tombstone, 2 a job id follows, 4 the backend does not have it yet,
 *           8 its bytes are in slices, 16 their MD5 follows, 32 the count of parts follows
 *   u8      checksum type
 *   varint  size, version.term, version.map, version.counter, modified_ms
 *   bytes   the checksum's digest
 *   bytes   the MD5, with flag 16
 *   varint  the count of parts, with flag 32
 *   text\0  job id, with flag 2 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/checksum.h"
#include "common/error.h"
#include "target/format/attr.h"

enum { INDEX_RECORD_MAX = 3 + 6 * 10 + CHECKSUM_MAX + 16 + ATTR_JOB_MAX + 1 };

struct index_record {
    uint64_t size;
    struct version version;
    struct checksum_value checksum;
    struct checksum_value md5; /* ATTR_MD5; or of no type, as in records of earlier builds */
    unsigned md5_parts;        /* the MD5 is that of so many parts' MD5s; 0: of the bytes */
    int64_t modified_ms;
    const char *job; /* NULL, or the job whose commit makes the object visible */
    bool tombstone;
    bool pending; /* ATTR_PENDING */
    bool sliced; /* a manifest (ec_manifest.h): size and checksum are those of what it stands for */
};

/* The record of an object with these attributes, as users see it (ec_manifest.h); the job's text is
 * borrowed. */
struct index_record index_record_of(const struct attr *a);
size_t index_record_encode(const struct index_record *rec,
                           unsigned char out[static INDEX_RECORD_MAX]);
int index_record_decode(const void *data, size_t len, struct index_record *rec, struct error *err);
