/* An image, read: directories and names, of our images, the reference's, and those of other
 * programs (ISO 9660 with or without Rock Ridge; Joliet is not read).
 *
 * Nothing in an image is trusted: each length is checked, and a walk ends. */
#pragma once

#include "vdisc/iso_susp_read.h"

struct iso_reader {
    struct iso_source source;
    bool rock_ridge;
    uint8_t skip;
    uint64_t blocks; /* of the volume, as its descriptor says */
    uint32_t root_lba, root_size;
    uint32_t root_mode, root_uid, root_gid;
    int64_t root_mtime_s;
};

struct iso_found {
    char name[ISO_NAME_MAX + 3]; /* "" of the root */
    enum iso_kind kind;
    uint64_t size; /* of a directory: of its records */
    uint32_t lba;
    uint64_t record,
        next; /* where in the image its record is, and the one behind it; 0 of the root */
    uint32_t mode, uid, gid; /* permissions alone */
    int64_t mtime_s;
    char target[ISO_LINK_MAX + 1]; /* of a link; "" */
};

/* E_IMAGE_DAMAGED where this is no ISO 9660. */
int iso_reader_open(struct iso_reader *r, const struct iso_source *s, struct error *err);
void iso_reader_root(const struct iso_reader *r, struct iso_found *root);

/* Sees each entry of a directory, in the order of its records.  visit() returns 0, or what ends
 * the list and is returned. */
typedef int iso_visit(void *context, const struct iso_found *entry, struct error *err);
int iso_reader_list(const struct iso_reader *r, const struct iso_found *directory, iso_visit *visit,
                    void *context, struct error *err);

/* The same from the record at `next` of an entry on. */
int iso_reader_list_from(const struct iso_reader *r, const struct iso_found *directory,
                         uint64_t next, iso_visit *visit, void *context, struct error *err);
/* The entry whose record is there. */
int iso_reader_record(const struct iso_reader *r, uint64_t record, struct iso_found *out,
                      struct error *err);

/* E_NOT_FOUND.  Links are not followed. */
int iso_reader_find(const struct iso_reader *r, const char *path, struct iso_found *out,
                    struct error *err);

/* Each entry below a directory, a directory before what is in it; a path begins without a slash. */
typedef int iso_walk_visit(void *context, const char *path, const struct iso_found *entry,
                           struct error *err);
int iso_reader_walk(const struct iso_reader *r, const struct iso_found *directory,
                    iso_walk_visit *visit, void *context, struct error *err);
