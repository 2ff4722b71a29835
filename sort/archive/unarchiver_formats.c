#include "sort/archive/unarchiver_formats.h"

#include <archive.h>
#include <string.h>

static int support_rar(struct archive *a)
{
    int rc = archive_read_support_format_rar(a);
    return rc == ARCHIVE_OK ? archive_read_support_format_rar5(a) : rc;
}

static const struct row {
    const char *name;
    unsigned format;
    int (*support)(struct archive *);
} rows[] = {
    {"tar", UNARCHIVER_TAR, archive_read_support_format_tar},
    {"zip", UNARCHIVER_ZIP, archive_read_support_format_zip},
    {"cpio", UNARCHIVER_CPIO, archive_read_support_format_cpio},
    {"7zip", UNARCHIVER_7ZIP, archive_read_support_format_7zip},
    {"ar", UNARCHIVER_AR, archive_read_support_format_ar},
    {"iso9660", UNARCHIVER_ISO9660, archive_read_support_format_iso9660},
    {"rar", UNARCHIVER_RAR, support_rar},
};
#define ROWS (sizeof rows / sizeof *rows)

static const struct row *find(const char *name, size_t len)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strlen(rows[i].name) == len && memcmp(rows[i].name, name, len) == 0)
            return &rows[i];
    }
    return NULL;
}

int unarchiver_formats_parse(const char *text, unsigned *out, struct error *err)
{
    unsigned formats = 0;
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");
        const struct row *row = find(at, len);
        if (row == NULL)
            return error_set(err, E_INVALID,
                             "'%.*s' is no format of archives: known are tar, zip, cpio, 7zip, ar, "
                             "iso9660 and rar, separated by commas",
                             len < 64 ? (int)len : 64, at);
        formats |= row->format;
        at += len;
        if (*at == '\0')
            break;
    }
    *out = formats;
    return 0;
}

bool unarchiver_formats_support(struct archive *a, unsigned formats)
{
    bool fine = true;
    for (size_t i = 0; i < ROWS; i++) {
        if ((formats & rows[i].format) != 0)
            fine = fine && rows[i].support(a) == ARCHIVE_OK;
    }
    return fine;
}

bool unarchiver_is_iso9660(const void *data, size_t len)
{
    return len >= UNARCHIVER_ISO9660_BYTES && memcmp((const char *)data + 32769, "CD001", 5) == 0;
}

struct unarchiver_ways unarchiver_ways_of(int format)
{
    struct unarchiver_ways ways = {false};
    switch (format & ARCHIVE_FORMAT_BASE_MASK) {
    case ARCHIVE_FORMAT_CPIO:
        ways.long_headers = true;
        ways.late_contents =
            format == ARCHIVE_FORMAT_CPIO_SVR4_NOCRC || format == ARCHIVE_FORMAT_CPIO_SVR4_CRC;
        break;
    case ARCHIVE_FORMAT_AR:
        ways.long_headers = true;
        break;
    case ARCHIVE_FORMAT_7ZIP:
    case ARCHIVE_FORMAT_RAR:
    case ARCHIVE_FORMAT_RAR_V5:
        ways.unpacks_skipped = true;
        break;
    default:
        break;
    }
    return ways;
}
