/* The table of an image (NAME.vdsc): which object has which blocks.  schema/ has its form.
 *
 * The first part is NVIDIA VDisc's, so that its reader reads images of dfc, and this one reads
 * its images.  The second part has what dfc adds: entity tags and checksums. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/checksum.h"
#include "common/cleanup.h"
#include "common/error.h"

#define TABLE_ID 32 /* bytes: SHA-256 */
#define TABLE_MAX_DEFAULT (1ull << 30)

struct vdisc_extent {
    const char *address; /* relative to the table's own */
    uint32_t blocks;     /* of 2048 bytes */
    uint16_t padding;    /* bytes of the last block that are not the object's; 2048: an empty one */
    const char *etag;    /* "" where it is not known */
    const char *checksum; /* "TYPE:HEX"; "" where it is not known */
};

/* A content that shares its object with others. */
struct vdisc_member {
    uint32_t lba; /* of the image */
    uint8_t sha256[32];
};

struct vdisc_table {
    struct vdisc_extent *extents;
    uint32_t count;
    bool pinned; /* it has the second part */
    uint8_t image_id[TABLE_ID];
    bool has_content_id;
    uint8_t content_id[TABLE_ID];
    struct vdisc_member *members; /* ascending; those that are known */
    uint32_t member_count;
    struct arena *texts; /* of a table that was read; NULL */
};

/* The member that begins at this block, or NULL. */
const struct vdisc_member *vdisc_table_member(const struct vdisc_table *t, uint32_t lba);
/* The size of the object, and of the image, in bytes. */
uint64_t vdisc_extent_size(const struct vdisc_extent *e);
uint64_t vdisc_table_size(const struct vdisc_table *t);
/* What the object's bytes are compared with; false: it is not known, or of a type that is not. */
bool vdisc_extent_checksum(const struct vdisc_extent *e, struct checksum_value *out);
/* The first block of each extent, and the end; the caller's. */
uint64_t *vdisc_table_starts(const struct vdisc_table *t);
/* The extent that has this block, or UINT32_MAX. */
uint32_t vdisc_table_extent(const struct vdisc_table *t, const uint64_t *starts, uint32_t lba);

/* Appends the bytes of the object: gzip, the same for the same table.  max: bytes of the message
 * before it is packed; 0: TABLE_MAX_DEFAULT.  E_IMAGE_TOO_LARGE. */
int vdisc_table_write(const struct vdisc_table *t, uint64_t max, struct buf *out,
                      struct error *err);
/* Of any bytes.  max: bytes of the message when it is unpacked; 0: TABLE_MAX_DEFAULT.
 * E_IMAGE_DAMAGED, E_IMAGE_TOO_LARGE. */
int vdisc_table_read(const void *bytes, size_t len, uint64_t max, struct vdisc_table **table,
                     struct error *err);
void vdisc_table_free(struct vdisc_table *t); /* of one that was read */
DEFINE_CLEANUP(struct vdisc_table, vdisc_table_free);
