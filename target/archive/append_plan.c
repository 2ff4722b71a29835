#include "target/archive/append_plan.h"

#include <string.h>
#include <zlib.h>

#include "common/mem.h"
#include "io/file.h"
#include "sort/shard/tar_header.h"
#include "sort/shard/zip.h"
#include "sort/shard/zip_tail.h"
#include "target/archive/member_table.h"

enum { PIECE = 256 << 10, SHOWN = 256 };

/* --- pieces ----------------------------------------------------------------------------------- */

static void add_splice(struct append_plan *p, enum splice_from from, uint64_t offset,
                       uint64_t length)
{
    struct splice *all = (struct splice *)(void *)p->splices.data;
    struct splice *last = p->splices.len > 0 ? &all[append_plan_count(p) - 1] : NULL;
    const struct splice next = {.from = from, .offset = offset, .length = length};
    p->size += length;
    if (last != NULL && last->from == from && last->offset + last->length == offset)
        last->length += length;
    else if (length > 0)
        buf_append(&p->splices, (const char *)&next, sizeof next);
}

static void add_bytes(struct append_plan *p, const void *data, size_t len)
{
    const uint64_t at = p->bytes.len;
    buf_append(&p->bytes, data, len);
    add_splice(p, SPLICE_BYTES, at, len);
}

static void add_record(struct append_plan *p, struct buf *record)
{
    add_bytes(p, record->data, record->len);
    buf_clear(record);
}

size_t append_plan_count(const struct append_plan *p)
{
    return p->splices.len / sizeof(struct splice);
}

const struct splice *append_plan_at(const struct append_plan *p, size_t i)
{
    return (const struct splice *)(const void *)p->splices.data + i;
}

void append_plan_done(struct append_plan *p)
{
    buf_done(&p->bytes);
    buf_done(&p->splices);
}

/* --- the old members -------------------------------------------------------------------------- */

struct planning {
    const struct append_input *in;
    const struct append_body *body;
    struct append_plan *plan;
};

static bool replaces(const struct planning *p, const char *name, size_t len)
{
    struct member_place found;
    return member_table_find(p->body->table, name, len, &found);
}

static int refuse(const struct planning *p, const char *name, size_t len, struct error *err)
{
    return error_set(
        err, E_MEMBER_EXISTS,
        "archive '%s' has a member '%.*s' already: send 'overwrite=true' to replace it",
        p->in->old.shard, (int)(len < SHOWN ? len : SHOWN), name);
}

/* --- tar -------------------------------------------------------------------------------------- */

static int look_at_member(void *ctx, const struct tar_member *m, struct error *err)
{
    const struct planning *p = ctx;
    return !p->in->overwrite && replaces(p, m->path, m->path_len)
               ? refuse(p, m->path, m->path_len, err)
               : 0;
}

static void add_tar_member(const struct planning *p, const struct body_member *m)
{
    const struct body_piece *pieces = (const void *)p->body->pieces.data;
    for (size_t i = m->first_piece; i < m->first_piece + m->piece_count; i++) {
        const struct body_piece *piece = &pieces[i];
        if (piece->inline_data)
            add_bytes(p->plan, p->body->bytes.data + piece->offset, (size_t)piece->length);
        else
            add_splice(p->plan, SPLICE_BODY, piece->offset, piece->length);
    }
}

static int plan_tar(struct planning *p, struct error *err)
{
    static const char end_blocks[2 * TAR_BLOCK];
    uint64_t end = 0;
    int code = p->in->old.size > 0 ? tar_tail_find(&p->in->old, look_at_member, p, &end, err) : 0;
    if (code != 0)
        return code;
    add_splice(p->plan, SPLICE_OLD, 0, end);
    for (size_t i = 0; i < append_body_count(p->body); i++)
        add_tar_member(p, append_body_at(p->body, i));
    add_bytes(p->plan, end_blocks, sizeof end_blocks);
    return 0;
}

/* --- zip -------------------------------------------------------------------------------------- */

struct zip_plan {
    struct planning *all;
    struct zip_source source;
    struct zip_tail tail;
    struct buf directory, kept; /* of the old archive: its records, and those that stay */
    struct buf added;           /* records of the new members */
    struct buf record;
    uint64_t entries;
    unsigned char *piece;
};

static int check_zip_member(const struct append_body *b, const struct body_member *m,
                            struct error *err)
{
    const char *name = append_body_name(b, m);
    if (m->type == '0' && !m->sparse && m->name_len <= UINT16_MAX && name[m->name_len - 1] != '/')
        return 0;
    return error_set(err, E_MEMBER_UNREADABLE,
                     "member '%.*s' cannot be put into a zip: only plain files can",
                     (int)(m->name_len < SHOWN ? m->name_len : SHOWN), name);
}

static int sum_up(const struct zip_plan *z, const struct body_member *m, uint32_t *crc,
                  struct error *err)
{
    const struct body_source *body = &z->all->in->body;
    int code = 0;
    *crc = 0;
    for (uint64_t done = 0; done < m->size && code == 0;) {
        const size_t len = m->size - done < PIECE ? (size_t)(m->size - done) : PIECE;
        code = body->go_on(body->ctx, err);
        if (code == 0)
            code = file_pread_full(body->fd, z->piece, len, m->offset + done, err);
        if (code == 0)
            *crc = (uint32_t)crc32_z(*crc, z->piece, len);
        done += len;
    }
    return code;
}

static int add_zip_member(struct zip_plan *z, const struct body_member *m, struct error *err)
{
    struct append_plan *plan = z->all->plan;
    struct zip_entry e = {.name = append_body_name(z->all->body, m),
                          .name_len = m->name_len,
                          .offset = plan->size,
                          .size = m->size,
                          .stored = m->size,
                          .method = ZIP_STORED};
    int code = check_zip_member(z->all->body, m, err);
    if (code == 0)
        code = sum_up(z, m, &e.crc, err);
    if (code != 0)
        return code;
    zip_entry_begin(&e, m->type, m->mode, m->mtime_s);
    zip_put_local(&z->record, &e);
    add_record(plan, &z->record);
    add_splice(plan, SPLICE_BODY, m->offset, m->size);
    zip_put_central(&z->added, &e);
    z->entries++;
    return 0;
}

/* Of several members of one name the last one counts. */
static bool is_last(const struct append_body *b, const struct body_member *m)
{
    struct member_place last;
    return member_table_find(b->table, append_body_name(b, m), m->name_len, &last) &&
           last.offset == m->offset && last.size == m->size;
}

static int read_directory(struct zip_plan *z, struct error *err)
{
    const struct tar_source *old = &z->all->in->old;
    if (old->size == 0)
        return 0;
    int code = zip_tail_find(&z->source, &z->tail, err);
    if (code != 0)
        return code;
    const uint64_t len = z->tail.end - z->tail.begin;
    const uint64_t most = z->all->in->body.memory_max;
    if (len > most)
        return error_set(err, E_ARCHIVE_LIMIT,
                         "the directory of '%s' has more than %llu bytes: raise "
                         "archive_append_memory",
                         old->shard, (unsigned long long)most);
    buf_reserve(&z->directory, (size_t)len + 1);
    z->directory.len = (size_t)len;
    return len > 0 ? old->read(old->ctx, z->directory.data, (size_t)len, z->tail.begin, err) : 0;
}

/* Those that stay. */
static int keep_entries(struct zip_plan *z, struct error *err)
{
    const struct planning *p = z->all;
    size_t at = 0;
    struct zip_row row;
    for (uint64_t i = 0; i < z->tail.entries; i++, at += row.len) {
        int code = zip_row_at(&z->source, &z->tail, &z->directory, at, &row, err);
        if (code != 0)
            return code;
        const bool goes = replaces(p, row.name, row.name_len);
        if (goes && !p->in->overwrite)
            return refuse(p, row.name, row.name_len, err);
        if (!goes)
            buf_append(&z->kept, z->directory.data + at, row.len);
        z->entries += !goes;
    }
    return at == z->directory.len
               ? 0
               : error_set(err, E_SHARD_CORRUPT,
                           "shard '%s', byte %llu: the central directory does not end where it "
                           "should",
                           p->in->old.shard, (unsigned long long)(z->tail.begin + at));
}

static int add_end(struct zip_plan *z, struct error *err)
{
    const struct tar_source *old = &z->all->in->old;
    struct append_plan *plan = z->all->plan;
    _cleanup_free_ char *comment = xmalloc(z->tail.comment_len + 1);
    const struct zip_end end = {.entries = z->entries,
                                .begin = plan->size,
                                .size = z->kept.len + z->added.len,
                                .comment = comment,
                                .comment_len = z->tail.comment_len};
    int code = z->tail.comment_len > 0 ? old->read(old->ctx, comment, z->tail.comment_len,
                                                   old->size - z->tail.comment_len, err)
                                       : 0;
    add_record(plan, &z->kept);
    add_record(plan, &z->added);
    zip_put_end(&z->record, &end);
    add_record(plan, &z->record);
    return code;
}

static int plan_all_of_zip(struct zip_plan *z, struct error *err)
{
    const struct append_body *b = z->all->body;
    int code = read_directory(z, err);
    if (code == 0)
        code = keep_entries(z, err);
    add_splice(z->all->plan, SPLICE_OLD, 0, z->tail.begin);
    for (size_t i = 0; i < append_body_count(b) && code == 0; i++) {
        const struct body_member *m = append_body_at(b, i);
        if (is_last(b, m))
            code = add_zip_member(z, m, err);
    }
    return code != 0 ? code : add_end(z, err);
}

static int plan_zip(struct planning *p, struct error *err)
{
    const struct tar_source *old = &p->in->old;
    struct zip_plan z = {
        .all = p,
        .source = {.read = old->read, .ctx = old->ctx, .size = old->size, .shard = old->shard},
        .piece = xmalloc(PIECE)};
    int code = plan_all_of_zip(&z, err);
    buf_done(&z.directory);
    buf_done(&z.kept);
    buf_done(&z.added);
    buf_done(&z.record);
    free(z.piece);
    return code;
}

/* --- which ------------------------------------------------------------------------------------ */

bool append_format_of(const unsigned char *head, size_t len, enum append_format *out)
{
    struct tar_header header;
    const bool is_zip =
        len >= 4 && (zip_u32(head) == ZIP_SIG_LOCAL || zip_u32(head) == ZIP_SIG_END);
    *out = is_zip ? APPEND_ZIP : APPEND_TAR;
    return is_zip || len == 0 ||
           (len >= TAR_BLOCK &&
            (tar_header_is_zero(head) || tar_header_parse(head, &header) == NULL));
}

static bool ends_with(const char *name, const char *end)
{
    const size_t len = strlen(name), n = strlen(end);
    return len > n && strcmp(name + len - n, end) == 0;
}

int append_format_of_name(const char *name, enum append_format *out, struct error *err)
{
    *out = ends_with(name, ".zip") ? APPEND_ZIP : APPEND_TAR;
    if (*out == APPEND_ZIP || ends_with(name, ".tar"))
        return 0;
    return error_set(
        err, E_NOT_ARCHIVE,
        "object '%s' does not exist, and its name is that of no archive: a new archive "
        "must end with .tar or .zip",
        name);
}

const char *append_content_type(enum append_format format)
{
    return format == APPEND_ZIP ? "application/zip" : "application/x-tar";
}

int append_plan_make(const struct append_input *in, struct append_plan *out, struct error *err)
{
    struct append_body body;
    struct planning p = {.in = in, .body = &body, .plan = out};
    *out = (struct append_plan){.size = 0};
    int code = append_body_read(&in->body, in->overwrite, &body, err);
    if (code == 0)
        code = in->format == APPEND_ZIP ? plan_zip(&p, err) : plan_tar(&p, err);
    append_body_done(&body);
    if (code != 0)
        append_plan_done(out);
    return code;
}
