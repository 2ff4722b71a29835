#include "target/archive/member_scan.h"

#include <string.h>

#include "common/mem.h"
#include "io/reader.h"
#include "sort/shard/tar.h"
#include "sort/shard/tar_header.h"
#include "target/archive/member_table.h"
#include "target/format/ec_manifest.h"
#include "target/node/target.h"
#include "target/slices/source.h"

enum {
    AHEAD_BYTES = 1 << 20, /* of an object in slices, where headers are close together */
};

/* --- the bytes of an object ------------------------------------------------------------------- */

struct source {
    const struct member_scan *what;
    struct ec_reading slices;
    struct buf piece; /* of an object in slices: what was read from `at` on */
    uint64_t at;
};

static int take(void *ctx, const void *data, size_t len, struct error *err)
{
    struct source *s = ctx;
    (void)err;
    buf_append(&s->piece, data, len);
    return 0;
}

/* Wide where it goes on close by; a jump over large contents reads no more than is asked for. */
static int read_slices(struct source *s, size_t len, uint64_t offset, struct error *err)
{
    const uint64_t size = s->what->object->attr.size, end = s->at + s->piece.len;
    const bool near = offset <= end + AHEAD_BYTES;
    uint64_t wanted = near && len < AHEAD_BYTES ? AHEAD_BYTES : len;
    if (wanted > size - offset)
        wanted = size - offset;
    struct ec_bad bad;
    buf_clear(&s->piece);
    s->at = offset;
    int code = ec_source_range(&s->slices, offset, wanted, take, s, &bad, err);
    ec_source_report(&s->slices, &bad);
    if (code == 0 && s->piece.len < len)
        code = error_set(err, E_LENGTH, "the object is shorter than its size says");
    return code;
}

static int source_read(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    struct source *s = ctx;
    const struct object *o = s->what->object;
    if (o->attr.slices == NULL)
        return reader_pread(s->what->reader, o->fd, out, len, offset, err);
    if (len > o->attr.size || offset > o->attr.size - len)
        return error_set(err, E_LENGTH, "the object ends before");
    bool has = offset >= s->at && offset + len <= s->at + s->piece.len;
    int code = has ? 0 : read_slices(s, len, offset, err);
    if (code == 0)
        memcpy(out, s->piece.data + (offset - s->at), len);
    return code;
}

static int source_open(const struct member_scan *what, struct source *s, struct error *err)
{
    *s = (struct source){.what = what};
    s->slices = (struct ec_reading){.target = what->target,
                                    .state = state_current(what->target->state),
                                    .bucket_id = what->bucket_id,
                                    .name = what->object->attr.name};
    const char *manifest = what->object->attr.slices;
    return manifest != NULL ? ec_manifest_parse(manifest, &s->slices.manifest, err) : 0;
}

static void source_close(struct source *s)
{
    state_unref(s->slices.state);
    buf_done(&s->piece);
}

/* --- its headers ------------------------------------------------------------------------------ */

static int not_an_archive(const struct member_scan *what, struct error *err)
{
    return error_set(err, E_NOT_ARCHIVE,
                     "object '%s' is not a plain tar, and members of nothing else are read",
                     what->object->attr.name);
}

/* What it is, its first block says. */
static int check_kind(const struct member_scan *what, struct source *s, struct error *err)
{
    unsigned char block[TAR_BLOCK];
    struct tar_header header;
    const uint64_t size = what->object->attr.size;
    if (size == 0)
        return 0; /* an archive without members */
    if (size < TAR_BLOCK)
        return not_an_archive(what, err);
    int code = source_read(s, block, sizeof block, 0, err);
    if (code != 0 || tar_header_is_zero(block) || tar_header_parse(block, &header) == NULL)
        return code;
    return not_an_archive(what, err);
}

static enum member_kind kind_of(const struct tar_member *m)
{
    if (m->sparse)
        return MEMBER_SPARSE;
    switch (m->type) {
    case '0':
    case '7': /* "contiguous": a file for everybody today */
        return MEMBER_FILE;
    case '1':
        return MEMBER_HARD_LINK;
    case '2':
        return MEMBER_SYMBOLIC_LINK;
    case '5':
        return MEMBER_DIRECTORY;
    default:
        return MEMBER_OTHER;
    }
}

static int scan_all(const struct member_scan *what, struct tar_scan *scan, struct member_table *t,
                    struct error *err)
{
    struct tar_member m;
    size_t bytes = 0;
    int rc = 0;
    while (rc == 0 && (rc = tar_scan_next(scan, &m, err)) > 0) {
        const struct member_place place = {.name = m.path,
                                           .name_len = m.path_len,
                                           .kind = kind_of(&m),
                                           .offset = m.contents_offset,
                                           .size = m.contents_size,
                                           .mtime_s = m.mtime_s};
        member_table_add(t, &place);
        bool grown = member_table_bytes(t) != bytes;
        bytes = member_table_bytes(t);
        rc = grown ? what->grow(what->ctx, bytes, err) : 0;
    }
    return rc;
}

/* In the words of who reads members. */
static int explain(const struct member_scan *what, int code, struct error *err)
{
    const char *name = what->object->attr.name;
    if (code == E_SHARD_CORRUPT)
        return error_recode(err, E_ARCHIVE_DAMAGED, "archive '%s'", name);
    if (code == E_SHARD_UNSUPPORTED)
        return error_recode(err, E_NOT_ARCHIVE, "archive '%s' has what no member is read of", name);
    return code;
}

int member_scan(const struct member_scan *what, struct member_table **out, struct error *err)
{
    struct source source;
    _cleanup_(member_table_freep)
    struct member_table *table = member_table_new();
    _cleanup_(tar_scan_freep)
    struct tar_scan *scan =
        tar_scan_new(what->object->fd, what->object->attr.size, what->object->attr.name);
    int code = source_open(what, &source, err);
    if (code == 0)
        code = check_kind(what, &source, err);
    if (code == 0) {
        tar_scan_source(scan, source_read, &source);
        tar_scan_sparse(scan);
        code = scan_all(what, scan, table, err);
    }
    source_close(&source);
    if (code != 0)
        return explain(what, code, err);
    member_table_finish(table);
    *out = steal(table);
    return 0;
}
