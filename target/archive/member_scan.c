#include "target/archive/member_scan.h"

#include "common/mem.h"
#include "sort/shard/tar.h"
#include "sort/shard/tar_header.h"
#include "target/archive/archive_source.h"
#include "target/archive/member_table.h"
#include "target/archive/member_unpack.h"

/* What it is, its first block says. */
static int find_kind(struct archive_source *s, bool *plain, struct error *err)
{
    unsigned char block[TAR_BLOCK];
    struct tar_header header;
    *plain = s->object->attr.size == 0; /* an archive without members */
    if (s->object->attr.size < TAR_BLOCK)
        return 0;
    int code = archive_source_read(s, block, sizeof block, 0, err);
    if (code == 0)
        *plain = tar_header_is_zero(block) || tar_header_parse(block, &header) == NULL;
    return code;
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

static int scan_all(struct archive_source *s, struct tar_scan *scan, struct member_table *t,
                    struct error *err)
{
    struct tar_member m;
    int rc = 0;
    while (rc == 0 && (rc = tar_scan_next(scan, &m, err)) > 0) {
        const struct member_place place = {.name = m.path,
                                           .name_len = m.path_len,
                                           .kind = kind_of(&m),
                                           .offset = m.contents_offset,
                                           .size = m.contents_size,
                                           .mtime_s = m.mtime_s};
        member_table_add(t, &place);
        rc = s->go_on(s->ctx, err);
    }
    return rc;
}

static int scan_plain(struct archive_source *s, struct member_table *t, struct error *err)
{
    _cleanup_(tar_scan_freep)
    struct tar_scan *scan = tar_scan_new(-1, s->object->attr.size, s->object->attr.name);
    tar_scan_source(scan, archive_source_read, s);
    tar_scan_sparse(scan);
    return archive_source_explain(s, scan_all(s, scan, t, err), err);
}

struct growing {
    const struct member_scan *what;
    const struct member_table *table;
    size_t bytes; /* of the table, when it was asked for them */
};

static int grow(void *ctx, struct error *err)
{
    struct growing *g = ctx;
    size_t bytes = member_table_bytes(g->table);
    bool grown = bytes != g->bytes;
    g->bytes = bytes;
    return g->what->grow(g->what->ctx, grown ? bytes : 0, err);
}

int member_scan(const struct member_scan *what, struct member_table **out, struct error *err)
{
    _cleanup_(member_table_freep)
    struct member_table *table = member_table_new();
    struct growing growing = {.what = what, .table = table};
    struct archive_source source = {.target = what->target,
                                    .bucket_id = what->bucket_id,
                                    .object = what->object,
                                    .reader = what->reader,
                                    .go_on = grow,
                                    .ctx = &growing};
    bool plain = false;
    int code = archive_source_open(&source, err);
    if (code == 0)
        code = find_kind(&source, &plain, err);
    if (code == 0)
        code = plain ? scan_plain(&source, table, err) : member_unpack_scan(&source, table, err);
    archive_source_close(&source);
    if (code != 0)
        return code;
    member_table_finish(table);
    *out = steal(table);
    return 0;
}
