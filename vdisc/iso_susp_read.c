#include "vdisc/iso_susp_read.h"

#include <string.h>

#include "vdisc/iso_date.h"

#define HEAD 4
#define CONTINUATIONS_MAX 32 /* of one record, as Linux has it */

/* The bytes that CE points to. */
struct next {
    bool given;
    uint32_t lba, offset, len;
};

static int damaged(struct error *err, const char *what)
{
    return error_set(err, E_IMAGE_DAMAGED, "the image is damaged: %s", what);
}

static int read_nm(const uint8_t *f, size_t len, struct susp_found *found, struct error *err)
{
    size_t n = len - HEAD - 1;
    if (found->name_len + n >= sizeof found->name)
        return damaged(err, "a name is longer than 255 bytes");
    memcpy(found->name + found->name_len, f + HEAD + 1, n);
    found->name_len += n;
    return 0;
}

static void read_px(const uint8_t *f, size_t len, struct susp_found *found)
{
    if (len < 36)
        return;
    found->has_px = true;
    found->mode = iso_get32(f + 4);
    found->uid = iso_get32(f + 20);
    found->gid = iso_get32(f + 28);
}

/* Times are in the order of their bits: creation, modification, … (RRIP 4.1.6); short or long. */
static void read_tf(const uint8_t *f, size_t len, struct susp_found *found)
{
    const uint8_t flags = f[HEAD];
    const size_t size = (flags & 0x80) != 0 ? ISO_DATE_LONG : ISO_DATE_SHORT;
    size_t at = HEAD + 1 + ((flags & 1) != 0 ? size : 0);
    if ((flags & 2) == 0 || size != ISO_DATE_SHORT || at + size > len)
        return;
    found->has_time = true;
    found->mtime_s = iso_date_get(f + at);
}

static int add_target(struct susp_found *found, const char *text, size_t len, struct error *err)
{
    if (found->target_len + len >= sizeof found->target)
        return damaged(err, "the target of a link is longer than 4095 bytes");
    memcpy(found->target + found->target_len, text, len);
    found->target_len += len;
    return 0;
}

static int read_component(const uint8_t *c, struct susp_found *found, struct error *err)
{
    const bool again = found->part_continues;
    const size_t len = found->target_len;
    int rc = 0;
    found->part_continues = (c[0] & 1) != 0;
    if (!again && len > 0 && found->target[len - 1] != '/')
        rc = add_target(found, "/", 1, err);
    if (rc != 0)
        return rc;
    if ((c[0] & 8) != 0)
        return add_target(found, "/", 1, err);
    if ((c[0] & 4) != 0)
        return add_target(found, "..", 2, err);
    if ((c[0] & 2) != 0)
        return add_target(found, ".", 1, err);
    return add_target(found, (const char *)c + 2, c[1], err);
}

static int read_sl(const uint8_t *f, size_t len, struct susp_found *found, struct error *err)
{
    int rc = 0;
    for (size_t at = HEAD + 1; rc == 0 && at + 2 <= len; at += 2 + (size_t)f[at + 1]) {
        if (at + 2 + f[at + 1] > len)
            return damaged(err, "a part of a link's target is cut");
        rc = read_component(f + at, found, err);
    }
    return rc;
}

static bool is(const uint8_t *f, const char *letters)
{
    return memcmp(f, letters, 2) == 0;
}

static int read_field(const uint8_t *f, size_t len, struct susp_found *found, struct next *next,
                      struct error *err)
{
    if (is(f, "SP") && len >= 7 && f[4] == 0xbe && f[5] == 0xef) {
        found->has_sp = true;
        found->skip = f[6];
    } else if (is(f, "NM") && len > HEAD && (f[HEAD] & 6) == 0) {
        return read_nm(f, len, found, err);
    } else if (is(f, "PX")) {
        read_px(f, len, found);
    } else if (is(f, "TF") && len > HEAD) {
        read_tf(f, len, found);
    } else if (is(f, "SL") && len > HEAD) {
        return read_sl(f, len, found, err);
    } else if (is(f, "CE") && len >= 28) {
        *next = (struct next){true, iso_get32(f + 4), iso_get32(f + 12), iso_get32(f + 20)};
    }
    return 0;
}

static int read_fields(const uint8_t *fields, size_t len, struct susp_found *found,
                       struct next *next, struct error *err)
{
    int rc = 0;
    for (size_t at = 0; rc == 0 && at + HEAD <= len && fields[at] != 0; at += fields[at + 2]) {
        if (fields[at + 2] < HEAD || at + fields[at + 2] > len)
            return damaged(err, "a field of a directory record is cut");
        if (is(fields + at, "ST"))
            return 0;
        rc = read_field(fields + at, fields[at + 2], found, next, err);
    }
    return rc;
}

int susp_read(const struct iso_source *s, const uint8_t *fields, size_t len,
              struct susp_found *found, struct error *err)
{
    uint8_t block[ISO_BLOCK];
    struct next next = {0};
    int rc = read_fields(fields, len, found, &next, err);
    for (unsigned i = 0; rc == 0 && next.given; i++) {
        const struct next at = next;
        next.given = false;
        if (i == CONTINUATIONS_MAX)
            return damaged(err, "a directory record continues without an end");
        if (at.offset > ISO_BLOCK || at.len > ISO_BLOCK - at.offset)
            return damaged(err, "the continuation of a directory record crosses a block");
        rc = s->read(s->context, (uint64_t)at.lba * ISO_BLOCK, block, sizeof block, err);
        if (rc == 0)
            rc = read_fields(block + at.offset, at.len, found, &next, err);
    }
    found->name[found->name_len] = '\0';
    found->target[found->target_len] = '\0';
    return rc;
}
