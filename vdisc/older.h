/* The entries of an image, for another burn: with the objects that have their contents.  Pure, but
 * for what the image is read by. */
#pragma once

#include "vdisc/iso_read.h"
#include "vdisc/plan.h"

/* An open image: the caller's, and alive as long as what is loaded of it. */
struct older_image {
    const struct vdisc_table *table;
    const struct iso_reader *reader;
    /* The names of an extent's object, malloc'ed. */
    int (*object)(void *ctx, uint32_t extent, char **bucket, char **key, struct error *err);
    /* Asked at each entry; what it fails with ends the load.  NULL: nothing is asked. */
    int (*check)(void *ctx, struct error *err);
    void *ctx;
    uint64_t entries_max; /* 0: any number */
};

struct older_entry {
    struct burn_row row;   /* its checksum: of a file whose SHA-256 is known */
    struct plan_part part; /* of a file */
};

struct older;

enum { OLDER_PATH_BYTES = 256 }; /* of an entry, on average */

/* A crafted image may have directories that share records, so that a small header has 2^n entries.
 * entries_max bounds the entries, and OLDER_PATH_BYTES times as much bounds their paths.
 *
 * E_IMAGE_DAMAGED; E_IMAGE_TOO_LARGE: beyond entries_max; E_UNSUPPORTED: a file is in more than one
 * object; what object(), check() and the reader fail with. */
int older_load(const struct older_image *image, struct older **older, struct error *err);
size_t older_count(const struct older *o);
const struct older_entry *older_entry(const struct older *o, size_t i); /* in the order of a walk */
/* By path ("a/b"); by content, whichever file of it.  NULL: there is none. */
const struct older_entry *older_find(const struct older *o, const char *path);
const struct older_entry *older_find_content(const struct older *o, uint64_t size,
                                             const uint8_t sha256[static 32]);
/* All entries become rows of the layer PLAN_OLDER.  Directories and links with the date of the
 * image get that of the new one, as they would in a burn of everything. */
void older_add(const struct older *o, struct plan *p);
void older_free(struct older *o);
DEFINE_CLEANUP(struct older, older_free);
