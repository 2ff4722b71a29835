#include "vdisc/rows.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/parse.h"

#define LINK "symlink:"
#define SHA256_DIGITS 64
#define MODE_MAX 07777u

enum column {
    PATH,
    ADDRESS,
    SIZE,
    CHECKSUM,
    MTIME,
    MODE,
    UID,
    GID,
    COLUMNS,
};

static const char *const names[COLUMNS] = {"iso_path", "object_url", "size", "checksum",
                                           "mtime",    "mode",       "uid",  "gid"};

static bool is_header(const char *const *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(fields[i], names[i]) != 0)
            return false;
    }
    return true;
}

/* A header that is none: other letters, another order, further columns. */
static bool is_like_header(const char *const *fields, size_t count)
{
    unsigned known = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t n = 0; n < COLUMNS; n++)
            known += strcasecmp(fields[i], names[n]) == 0;
    }
    return known > 1;
}

static int parse_checksum(const char *text, struct checksum_value *out, struct error *err)
{
    *out = (struct checksum_value){.type = CHECKSUM_NONE};
    const char *colon = strchr(text, ':');
    enum checksum_type type = CHECKSUM_SHA256;
    char name[16] = "";
    if (text[0] == '\0')
        return 0;
    if (colon != NULL && (size_t)(colon - text) < sizeof name) {
        memcpy(name, text, (size_t)(colon - text));
        int rc = checksum_from_name(name, &type, err);
        if (rc != 0)
            return rc;
    } else if (strlen(text) != SHA256_DIGITS) {
        return error_set(err, E_INVALID,
                         "'%.80s' is no checksum: expected 64 digits of a SHA-256, or TYPE:HEX",
                         text);
    }
    return checksum_parse(type, colon != NULL ? colon + 1 : text, out, err);
}

static int parse_u32(const char *text, uint32_t most, uint32_t standard, uint32_t *out,
                     struct error *err)
{
    uint64_t value = standard;
    int rc = text[0] != '\0' ? parse_u64(text, &value, err) : 0;
    if (rc == 0 && text[0] != '\0' && value > most)
        return error_set(err, E_INVALID, "'%.80s' is more than %u", text, most);
    *out = (uint32_t)value;
    return rc;
}

static int parse_mode(const char *text, uint32_t *out, struct error *err)
{
    char *end = NULL;
    *out = ISO_NO_MODE;
    if (text[0] == '\0')
        return 0;
    unsigned long mode = strtoul(text, &end, 8);
    if (*end != '\0' || text[0] < '0' || text[0] > '7' || mode > MODE_MAX)
        return error_set(err, E_INVALID, "mode '%.80s' is not octal, 0 to 7777", text);
    *out = (uint32_t)mode;
    return 0;
}

static int parse_kind(const char *const *fields, struct burn_row *row, struct error *err)
{
    struct iso_entry *e = &row->entry;
    const size_t len = strlen(fields[PATH]);
    const bool has_size = fields[SIZE][0] != '\0';
    if (fields[ADDRESS][0] == '\0') {
        if (len == 0 || fields[PATH][len - 1] != '/' || has_size)
            return error_set(err, E_INVALID,
                             "'%.200s' has no object_url: a directory has none, ends with a slash "
                             "and has no size",
                             fields[PATH]);
        e->kind = ISO_DIRECTORY;
        return 0;
    }
    if (strncmp(fields[ADDRESS], LINK, strlen(LINK)) == 0) {
        e->kind = ISO_LINK;
        e->target = fields[ADDRESS] + strlen(LINK);
        return 0;
    }
    e->kind = ISO_FILE;
    row->address = fields[ADDRESS];
    return parse_u64(fields[SIZE], &e->size, err);
}

static int parse_columns(const char *const *fields, struct burn_row *row, struct error *err)
{
    struct iso_entry *e = &row->entry;
    int rc = parse_kind(fields, row, err);
    if (rc == 0)
        rc = parse_checksum(fields[CHECKSUM], &row->checksum, err);
    if (rc == 0 && fields[MTIME][0] != '\0')
        rc = parse_i64(fields[MTIME], &e->mtime_s, err);
    if (rc == 0)
        rc = parse_mode(fields[MODE], &e->mode, err);
    if (rc == 0)
        rc = parse_u32(fields[UID], UINT32_MAX, 0, &e->uid, err);
    if (rc == 0)
        rc = parse_u32(fields[GID], UINT32_MAX, 0, &e->gid, err);
    return rc;
}

int burn_row_parse(uint64_t line, const char *const *fields, size_t count, struct burn_row *row,
                   struct error *err)
{
    const char *all[COLUMNS];
    if (line == 1 && (count > COLUMNS || !is_header(fields, count)) &&
        is_like_header(fields, count))
        return error_set(err, E_INVALID,
                         "line 1: the header must be "
                         "iso_path,object_url,size,checksum,mtime,mode,uid,gid, in small letters "
                         "and in this order; the last five may be omitted");
    if (count < CHECKSUM || count > COLUMNS)
        return error_set(err, E_INVALID,
                         "line %llu: %zu fields; expected 3 to 8: iso_path,object_url,size,"
                         "checksum,mtime,mode,uid,gid",
                         (unsigned long long)line, count);
    if (line == 1 && is_header(fields, count))
        return 1;
    for (size_t i = 0; i < COLUMNS; i++)
        all[i] = i < count ? fields[i] : "";
    *row = (struct burn_row){.line = line, .entry.line = line};
    row->entry.path = all[PATH];
    row->entry.mtime_s = ISO_NO_TIME;
    int rc = parse_columns(all, row, err);
    return rc == 0 ? 0 : error_wrap(err, "line %llu", (unsigned long long)line);
}
