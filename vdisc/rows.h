/* The list of files that an image is burned of: rows of a CSV.
 *
 *     iso_path, object_url, size[, checksum[, mtime[, mode[, uid[, gid]]]]]
 *
 * A first row of these very names is a header.  object_url is what reference_parse() takes, or
 * symlink:TARGET; a path that ends with a slash and has neither address nor size is a directory.
 * size is in bytes.  checksum is "sha256:HEX" and the like, or the 64 digits of a SHA-256; mtime is
 * Unix seconds; mode is octal.  Each of these may be empty. */
#pragma once

#include "common/checksum.h"
#include "vdisc/iso_tree.h"

/* A row whose texts are the caller's. */
struct burn_row {
    uint64_t line;
    struct iso_entry entry; /* its content is not set */
    const char *address;    /* of a file */
    struct checksum_value checksum;
};

/* 1: the row is a header, which only line 1 can be; E_INVALID with the line. */
int burn_row_parse(uint64_t line, const char *const *fields, size_t count, struct burn_row *row,
                   struct error *err);
