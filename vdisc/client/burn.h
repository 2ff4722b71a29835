/* A list of files, a directory, or a changed older image becomes an image.
 *
 *     burn_new → burn_from → burn_remove → burn_base, as wanted
 *              → burn_feed of the CSV, in pieces, or burn_tree, or burn_bucket
 *              → burn_finish → burn_free
 *
 * The table is written last, and only where no object has its name: the image is there at once, or
 * not at all.  The header's name has its checksum: no other burn writes other bytes there. */
#pragma once

#include "api/dfc.h"
#include "vdisc/burn_rules.h"
#include "vdisc/iso_volume.h"
#include "vdisc/plan.h"

struct burn;

struct burn_options {
    const char *bucket, *key; /* of the table */
    struct plan_options plan;
    struct iso_volume volume;
    bool digest;      /* the targets compute the SHA-256 of what no row knows */
    bool no_check;    /* do not ask for the objects: then nothing says what they were */
    bool pack;        /* small files of a directory share objects */
    bool allow_empty; /* a list without rows is no error */
    unsigned threads; /* that ask, at least 1 */
};

struct burn_result {
    uint64_t entries; /* rows of the list */
    uint64_t files, extents;
    uint64_t image_bytes;
    uint64_t shared_bytes; /* that files would have in addition if each had its own */
    uint64_t header_bytes, table_bytes;
    uint64_t sent_objects, sent_bytes;   /* contents that were not there */
    uint32_t many_sections, far_parents; /* struct iso_layout */
    char image_id[2 * TABLE_ID + 1];
};

/* The texts of the options must outlive it. */
struct burn *burn_new(struct dfc_client *c, const struct burn_options *options);
/* Begins with the entries of an older image, which what follows adds to and replaces.  An object of
 * it that has been replaced since fails the burn. */
int burn_from(struct burn *b, const char *bucket, const char *key, struct dfc_error *err);
void burn_remove(struct burn *b, const char *path); /* of that image, with everything below it */
/* An image that burn_tree() compares with: files of the same path, size and time are not read, and
 * contents that it has are not stored again. */
int burn_base(struct burn *b, const char *bucket, const char *key, struct dfc_error *err);
/* The objects whose names begin with `prefix`, which their paths do not have. */
int burn_bucket(struct burn *b, const char *bucket, const char *prefix, struct dfc_error *err);
/* Everything below a directory.  DFC_LOCAL: a file cannot be read, or changes meanwhile. */
int burn_tree(struct burn *b, const char *directory, struct dfc_error *err);
int burn_feed(struct burn *b, const void *bytes, size_t len, struct dfc_error *err);
/* DFC_CONFLICT: the image exists (`object_exists`), or an object is not as the list says
 * (`image_changed`); DFC_NOT_FOUND: an object is missing; DFC_INVALID: the list. */
int burn_finish(struct burn *b, struct burn_result *result, struct dfc_error *err);
void burn_free(struct burn *b);
DEFINE_CLEANUP(struct burn, burn_free);
