/* The formats of archives that libarchive may read, by name: "tar,zip,cpio".
 *
 * tar, zip and cpio are read with bounded memory.  The others are more code for bytes that are not
 * trusted, and take as much memory as libarchive does: they are read where operators allow it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct archive;

enum unarchiver_format {
    UNARCHIVER_TAR = 1 << 0,
    UNARCHIVER_ZIP = 1 << 1,
    UNARCHIVER_CPIO = 1 << 2,
    UNARCHIVER_7ZIP = 1 << 3,
    UNARCHIVER_AR = 1 << 4,
    UNARCHIVER_ISO9660 = 1 << 5,
    UNARCHIVER_RAR = 1 << 6, /* and RAR 5 */
};

#define UNARCHIVER_FORMATS (UNARCHIVER_TAR | UNARCHIVER_ZIP | UNARCHIVER_CPIO)
#define UNARCHIVER_FORMATS_TEXT "tar,zip,cpio"

/* Names separated by commas; E_INVALID tells which is none, and those that there are. */
int unarchiver_formats_parse(const char *text, unsigned *out, struct error *err);
/* false: archive_error_string() says why. */
bool unarchiver_formats_support(struct archive *a, unsigned formats);

/* What the first bytes say: UNARCHIVER_ISO9660_BYTES of them are enough. */
enum { UNARCHIVER_ISO9660_BYTES = 32768 + 6 };
bool unarchiver_is_iso9660(const void *data, size_t len);

/* What is particular about a format, by archive_format(). */
struct unarchiver_ways {
    bool unpacks_skipped; /* the contents of a member that is passed over are unpacked */
    bool long_headers;    /* a header has as many bytes as it states: they must be bounded */
    bool late_contents;   /* of a file with several names, the last one has the contents */
};
struct unarchiver_ways unarchiver_ways_of(int format);
