#include "target/archive/member_scan.h"

#include "common/mem.h"
#include "sort/archive/unarchiver_formats.h"
#include "sort/shard/tar.h"
#include "sort/shard/tar_header.h"
#include "target/archive/archive_source.h"
#include "target/archive/member_table.h"
#include "target/archive/member_unpack.h"

/* An ISO 9660 image begins with zeros, as a tar without members does. */
static int find_image(struct archive_source *s, bool *plain, struct error *err)
{
    *plain = true;
    if (s->object->attr.size < UNARCHIVER_ISO9660_BYTES)
        return 0;
    _cleanup_free_ unsigned char *head = xmalloc(UNARCHIVER_ISO9660_BYTES);
    int code = archive_source_read(s, head, UNARCHIVER_ISO9660_BYTES, 0, err);
    if (code == 0)
        *plain = !unarchiver_is_iso9660(head, UNARCHIVER_ISO9660_BYTES);
    return code;
}

/* What it is, its first block says. */
static int find_kind(struct archive_source *s, bool *plain, struct error *err)
{
    unsigned char block[TAR_BLOCK];
    struct tar_header header;
    *plain = s->object->attr.size == 0; /* an archive without members */
    if (s->object->attr.size < TAR_BLOCK)
        return 0;
    int code = archive_source_read(s, block, sizeof block, 0, err);
    if (code == 0 && tar_header_is_zero(block))
        return find_image(s, plain, err);
    if (code == 0)
        *plain = tar_header_parse(block, &header) == NULL;
    return code;
}

static int scan_all(struct archive_source *s, struct tar_scan *scan, struct member_table *t,
                    struct error *err)
{
    struct tar_member m;
    int rc = 0;
    while (rc == 0 && (rc = tar_scan_next(scan, &m, err)) > 0) {
        const struct member_place place = {.name = m.path,
                                           .name_len = m.path_len,
                                           .kind =
                                               m.sparse ? MEMBER_SPARSE : member_kind_of(m.type),
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

int member_scan(struct archive_source *s, struct member_table *t, struct error *err)
{
    bool plain = false;
    int code = find_kind(s, &plain, err);
    if (code == 0)
        code = plain ? scan_plain(s, t, err) : member_unpack_scan(s, t, err);
    if (code == 0)
        member_table_finish(t);
    return code;
}
