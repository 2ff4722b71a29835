#include "sort/shard/zip_tail.h"

#include <string.h>

#include "common/mem.h"
#include "sort/shard/zip.h"

#define TAIL_MAX (ZIP_END + UINT16_MAX) /* the end record and the longest comment */

static int fail(const struct zip_source *in, int code, uint64_t offset, const char *why,
                struct error *err)
{
    return error_set(err, code, "shard '%s', byte %llu: %s", in->shard, (unsigned long long)offset,
                     why);
}

static int corrupt(const struct zip_source *in, uint64_t offset, const char *why, struct error *err)
{
    return fail(in, E_SHARD_CORRUPT, offset, why, err);
}

static int read_at(const struct zip_source *in, uint64_t offset, void *out, size_t len,
                   struct error *err)
{
    if (offset > in->size || len > in->size - offset)
        return corrupt(in, in->size, "the file ends here: it is cut short", err);
    return in->read(in->ctx, out, len, offset, err);
}

static int misplaced(const struct zip_source *in, uint64_t at, struct error *err)
{
    return corrupt(in, at, "the central directory is not where it should be", err);
}

/* The ZIP64 record, where a locator before the end record points to it: it then counts, whether or
 * not the end record says that it must. */
static int find_end64(const struct zip_source *in, uint64_t end, struct zip_tail *t,
                      struct error *err)
{
    unsigned char l[ZIP_LOCATOR64], r[ZIP_END64];
    if (end < ZIP_LOCATOR64)
        return 0;
    int rc = read_at(in, end - ZIP_LOCATOR64, l, sizeof l, err);
    if (rc != 0 || zip_u32(l) != ZIP_SIG_LOCATOR64)
        return rc;
    uint64_t at = zip_u64(l + 8);
    rc = read_at(in, at, r, sizeof r, err);
    if (rc == 0 && zip_u32(r) != ZIP_SIG_END64)
        rc = corrupt(in, at, "there is no ZIP64 end record", err);
    if (rc != 0)
        return rc;
    if (zip_u32(r + 16) != 0 || zip_u32(r + 20) != 0 || zip_u64(r + 24) != zip_u64(r + 32))
        return fail(in, E_SHARD_UNSUPPORTED, at, "an archive of several volumes", err);
    uint64_t size = zip_u64(r + 40);
    t->entries = zip_u64(r + 32);
    t->begin = zip_u64(r + 48);
    t->end = at;
    return t->begin > at || size != at - t->begin ? misplaced(in, at, err) : 0;
}

static int end_record(const struct zip_source *in, uint64_t at, const unsigned char *r,
                      struct zip_tail *t, struct error *err)
{
    if (zip_u16(r + 4) != zip_u16(r + 6) || zip_u16(r + 8) != zip_u16(r + 10))
        return fail(in, E_SHARD_UNSUPPORTED, at, "an archive of several volumes", err);
    uint64_t size = zip_u32(r + 12);
    *t = (struct zip_tail){
        .entries = zip_u16(r + 10), .begin = zip_u32(r + 16), .comment_len = zip_u16(r + 20)};
    int rc = find_end64(in, at, t, err);
    if (rc != 0 || t->end != 0)
        return rc;
    t->end = at;
    return t->begin > at || size != at - t->begin ? misplaced(in, at, err) : 0;
}

/* The end record is the file's last, with a comment that fills the rest. */
int zip_tail_find(const struct zip_source *in, struct zip_tail *out, struct error *err)
{
    size_t len = in->size < TAIL_MAX ? (size_t)in->size : TAIL_MAX;
    _cleanup_free_ unsigned char *tail = xmalloc(len + 1);
    int rc = read_at(in, in->size - len, tail, len, err);
    for (size_t back = ZIP_END; rc == 0 && back <= len; back++) {
        const unsigned char *r = tail + len - back;
        if (zip_u32(r) == ZIP_SIG_END && zip_u16(r + 20) == back - ZIP_END)
            return end_record(in, in->size - back, r, out, err);
    }
    return rc != 0 ? rc
                   : corrupt(in, in->size,
                             "the file ends without an end record: it is cut short or no zip", err);
}

int zip_row_at(const struct zip_source *in, const struct zip_tail *t, const struct buf *directory,
               size_t at, struct zip_row *out, struct error *err)
{
    const unsigned char *r = (const unsigned char *)directory->data + at;
    const size_t left = directory->len - at;
    if (left < ZIP_CENTRAL || zip_u32(r) != ZIP_SIG_CENTRAL)
        return corrupt(in, t->begin + at, "the central directory is damaged", err);
    *out = (struct zip_row){.at = at,
                            .len = (size_t)ZIP_CENTRAL + zip_u16(r + 28) + zip_u16(r + 30) +
                                   zip_u16(r + 32),
                            .name = (const char *)r + ZIP_CENTRAL,
                            .name_len = zip_u16(r + 28)};
    return out->len <= left ? 0
                            : corrupt(in, t->begin + at, "the central directory is damaged", err);
}
