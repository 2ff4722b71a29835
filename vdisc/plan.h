/* What an image is made of: rows in any order become a layout, and a list of the objects that it
 * refers to.  Pure; the caller asks the store for what is known of the objects.
 *
 *     plan_new → plan_add of each row → plan_unknown, to learn checksums
 *              → plan_files → plan_move, to store contents elsewhere
 *              → plan_close → objects: etag, checksum → plan_table
 *
 * Rows may be in layers: an older image, what is removed, what is put in its place (layers.h).
 *
 * Equal contents become one extent.  Equal are: empty files; files of one object; files with one
 * SHA-256 and size.  Of several objects with the same content the bytewise first is referred to. */
#pragma once

#include "common/buf.h"
#include "common/checksum.h"
#include "vdisc/iso_layout.h"
#include "vdisc/iso_volume.h"
#include "vdisc/rows.h"
#include "vdisc/table.h"

struct plan;

/* The bytes of a file: an object, or a part of one. */
struct plan_part {
    const char *bucket, *key;
    uint64_t object_size;
    uint64_t offset;                       /* whole blocks */
    struct checksum_value object_checksum; /* of an object that has more than the file, if known */
    const char *etag;                      /* that the object must have still; NULL: any */
};

enum plan_layer { PLAN_OLDER, PLAN_REMOVED, PLAN_NEW };

/* An object that the image refers to: one extent. */
struct plan_object {
    const char *bucket, *key;
    uint64_t size;
    struct checksum_value checksum; /* by the list; CHECKSUM_NONE where it does not say */
    const char *wanted_etag;        /* struct plan_part */
    uint64_t line;                  /* of a row that names it; 0: it is of no list */
    /* Set by the caller, owned by it; NULL: not known. */
    const char *etag;
    const char *pin; /* "TYPE:HEX" */
};

/* A file that is new in the image. */
struct plan_file {
    const char *path; /* clean */
    uint64_t size;
    struct checksum_value checksum;
    uint64_t line;
    struct plan_part part; /* where it is */
    uint32_t number;       /* the plan's own */
};

struct plan_options {
    enum iso_names names;
    bool joliet;
    int64_t date_s;       /* or ISO_NO_TIME */
    uint64_t entries_max; /* 0: 50 million */
    uint64_t table_max;   /* bytes of the table, unpacked; 0: TABLE_MAX_DEFAULT */
};

struct plan *plan_new(void);
/* Copies the row.  part: of a file, else NULL. */
void plan_add(struct plan *p, enum plan_layer layer, const struct burn_row *row,
              const struct plan_part *part);
/* The path, and everything below it, of an older image. */
void plan_remove(struct plan *p, const char *path);
uint64_t plan_rows(const struct plan *p);
/* Optional, before plan_close(): the objects that are whole files, and whose SHA-256 no row knows.
 * The caller sets `checksum` and `etag` of those that it learns; the list is the plan's.  Errors as
 * of plan_close(). */
int plan_unknown(struct plan *p, const struct plan_options *options, struct plan_object **objects,
                 uint32_t *count, struct error *err);
/* Optional, behind plan_unknown(): all files of PLAN_NEW, in path order.  The list is the plan's,
 * and knows what was learnt.  Errors as of plan_close(). */
int plan_files(struct plan *p, const struct plan_options *options, struct plan_file **files,
               size_t *count, struct error *err);
/* The files are where the caller has set their `part` to. */
int plan_move(struct plan *p, struct error *err);
/* E_INVALID: two rows contradict each other; E_NOT_FOUND: no entry has a removed path;
 * E_IMAGE_NAME, E_IMAGE_TOO_LARGE. */
int plan_close(struct plan *p, const struct plan_options *options, struct error *err);
const struct iso_layout *plan_layout(const struct plan *p);
/* In the order of their extents, behind the header's. */
struct plan_object *plan_objects(struct plan *p, uint32_t *count);

/* The table of the image at bucket/key, whose header is `header` (etag, pin) and has this SHA-256;
 * appended to `out`.  image_id: as the table has it.  E_IMAGE_TOO_LARGE: beyond table_max. */
int plan_table(struct plan *p, const char *bucket, const char *key,
               const struct plan_object *header, const uint8_t header_sha256[static TABLE_ID],
               uint8_t image_id[static TABLE_ID], struct buf *out, struct error *err);
void plan_free(struct plan *p);
DEFINE_CLEANUP(struct plan, plan_free);
