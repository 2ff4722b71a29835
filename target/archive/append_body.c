#include "target/archive/append_body.h"

#include <string.h>

#include "io/file.h"
#include "sort/shard/tar_header.h"
#include "sort/shard/tar_make.h"
#include "sort/shard/tar_tail.h"
#include "target/archive/member_table.h"

enum { MODE = 0644, SHOWN = 256 };

#define SHOW(name, len) (int)((len) < SHOWN ? (len) : SHOWN), (name)

/* --- names ------------------------------------------------------------------------------------ */

static bool has_parent(const char *name, size_t len)
{
    for (size_t at = 0; at < len;) {
        const char *slash = memchr(name + at, '/', len - at);
        const size_t end = slash != NULL ? (size_t)(slash - name) : len;
        if (end - at == 2 && memcmp(name + at, "..", 2) == 0)
            return true;
        at = end + 1;
    }
    return false;
}

int append_name_check(const char *name, size_t len, struct error *err)
{
    const char *why = len == 0                          ? "it is empty"
                      : len > TAR_PATH_MAX              ? "it is too long"
                      : memchr(name, '\0', len) != NULL ? "it has a NUL"
                      : name[0] == '/'                  ? "it begins with '/'"
                      : has_parent(name, len)           ? "it has the component '..'"
                                                        : NULL;
    return why == NULL ? 0
                       : error_set(err, E_INVALID, "a member cannot be named '%.*s': %s",
                                   SHOW(name, len), why);
}

/* --- what a body has -------------------------------------------------------------------------- */

struct reading {
    const struct body_source *in;
    struct append_body *body;
};

static uint64_t memory_of(const struct append_body *b)
{
    return b->names.len + b->bytes.len + b->members.len + b->pieces.len +
           member_table_bytes(b->table);
}

static int check_limits(const struct body_source *in, const struct append_body *b,
                        struct error *err)
{
    if (append_body_count(b) > APPEND_MEMBERS_MAX)
        return error_set(err, E_ARCHIVE_LIMIT,
                         "the body has more than %d members: send it in parts", APPEND_MEMBERS_MAX);
    if (memory_of(b) > in->memory_max)
        return error_set(err, E_ARCHIVE_LIMIT,
                         "the headers of the body take more than %llu bytes of memory: send it in "
                         "parts, or raise archive_append_memory",
                         (unsigned long long)in->memory_max);
    return 0;
}

static void add_range(struct append_body *b, struct body_member *m, uint64_t offset,
                      uint64_t length)
{
    const struct body_piece piece = {.offset = offset, .length = length};
    if (length == 0)
        return;
    buf_append(&b->pieces, (const char *)&piece, sizeof piece);
    m->piece_count++;
}

static void add_inline(struct append_body *b, struct body_member *m, const void *data, size_t len)
{
    const struct body_piece piece = {.inline_data = true, .offset = b->bytes.len, .length = len};
    if (len == 0)
        return;
    buf_append(&b->bytes, data, len);
    buf_append(&b->pieces, (const char *)&piece, sizeof piece);
    m->piece_count++;
}

static struct body_member begin_member(struct append_body *b, const char *name, size_t len)
{
    const struct body_member m = {.name_at = b->names.len,
                                  .name_len = len,
                                  .mode = MODE,
                                  .first_piece = b->pieces.len / sizeof(struct body_piece)};
    buf_append(&b->names, name, len);
    return m;
}

static void end_member(struct append_body *b, const struct body_member *m)
{
    const struct member_place place = {.name = append_body_name(b, m),
                                       .name_len = m->name_len,
                                       .kind = member_kind_of(m->type),
                                       .offset = m->offset,
                                       .size = m->size};
    member_table_add(b->table, &place);
    buf_append(&b->members, (const char *)m, sizeof *m);
}

static int take_file(const struct body_source *in, struct append_body *b, struct error *err)
{
    static const char zeros[TAR_BLOCK];
    const size_t len = strlen(in->member);
    int code = append_name_check(in->member, len, err);
    if (code == 0 && in->member[len - 1] == '/')
        code = error_set(err, E_INVALID, "a file cannot be named '%.*s': it ends with '/'",
                         SHOW(in->member, len));
    if (code != 0)
        return code;
    struct body_member m = begin_member(b, in->member, len);
    m.type = '0';
    m.mtime_s = in->now_s;
    m.size = in->size;
    const struct tar_made made = {.path = in->member,
                                  .path_len = len,
                                  .type = m.type,
                                  .size = m.size,
                                  .mode = m.mode,
                                  .mtime = m.mtime_s};
    struct buf headers = BUF_INIT;
    tar_make_headers(&headers, &made);
    add_inline(b, &m, headers.data, headers.len);
    add_range(b, &m, 0, m.size);
    add_inline(b, &m, zeros, (size_t)(tar_padded(m.size) - m.size));
    buf_done(&headers);
    end_member(b, &m);
    return 0;
}

/* --- of a tar --------------------------------------------------------------------------------- */

static int read_body(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    const struct body_source *in = ctx;
    int code = in->go_on(in->ctx, err);
    return code != 0 ? code : file_pread_full(in->fd, out, len, offset, err);
}

/* Of its last header, which is before the contents. */
static int read_mode(const struct reading *r, const struct tar_member *t, uint32_t *mode,
                     struct error *err)
{
    unsigned char block[TAR_BLOCK];
    if (t->sparse || t->contents_offset < TAR_BLOCK)
        return 0;
    int code = read_body((void *)r->in, block, sizeof block, t->contents_offset - TAR_BLOCK, err);
    if (code == 0)
        *mode = tar_header_mode(block);
    return code;
}

static void add_pieces(struct append_body *b, struct body_member *m, const struct tar_member *t)
{
    for (unsigned i = 0; i < t->piece_count; i++) {
        const struct tar_piece *p = &t->pieces[i];
        if (p->inline_data != NULL)
            add_inline(b, m, p->inline_data, (size_t)p->length);
        else
            add_range(b, m, p->offset, p->length);
    }
}

static int take_member(void *ctx, const struct tar_member *t, struct error *err)
{
    const struct reading *r = ctx;
    uint32_t mode = MODE;
    int code = append_name_check(t->path, t->path_len, err);
    if (code == 0)
        code = read_mode(r, t, &mode, err);
    if (code != 0)
        return code;
    struct body_member m = begin_member(r->body, t->path, t->path_len);
    m.type = t->type;
    m.sparse = t->sparse;
    m.mode = mode;
    m.mtime_s = t->mtime_s;
    m.offset = t->contents_offset;
    m.size = t->contents_size;
    add_pieces(r->body, &m, t);
    end_member(r->body, &m);
    return check_limits(r->in, r->body, err);
}

static int take_tar(const struct body_source *in, struct append_body *b, struct error *err)
{
    struct reading r = {.in = in, .body = b};
    uint64_t end;
    const struct tar_source source = {
        .read = read_body, .ctx = (void *)in, .size = in->size, .shard = "the body"};
    int code = tar_tail_find(&source, take_member, &r, &end, err);
    if (code == E_SHARD_CORRUPT)
        return error_recode(err, E_ARCHIVE_DAMAGED, "the body must be a plain tar");
    if (code == E_SHARD_UNSUPPORTED)
        return error_recode(err, E_NOT_ARCHIVE, "the body must be a plain tar");
    if (code == 0 && append_body_count(b) == 0)
        return error_set(err, E_INVALID, "the body is a tar without members: send at least one");
    return code;
}

/* --- the whole -------------------------------------------------------------------------------- */

int append_body_read(const struct body_source *in, bool overwrite, struct append_body *out,
                     struct error *err)
{
    *out = (struct append_body){.table = member_table_new()};
    int code = in->member != NULL ? take_file(in, out, err) : take_tar(in, out, err);
    if (code == 0)
        member_table_finish(out->table);
    if (code == 0 && !overwrite && member_table_count(out->table) < append_body_count(out))
        code = error_set(err, E_MEMBER_EXISTS,
                         "the body has two members of one name: send 'overwrite=true' to keep the "
                         "last one");
    return code;
}

void append_body_done(struct append_body *b)
{
    buf_done(&b->names);
    buf_done(&b->bytes);
    buf_done(&b->members);
    buf_done(&b->pieces);
    member_table_free(b->table);
}

size_t append_body_count(const struct append_body *b)
{
    return b->members.len / sizeof(struct body_member);
}

const struct body_member *append_body_at(const struct append_body *b, size_t i)
{
    return (const struct body_member *)(const void *)b->members.data + i;
}

const char *append_body_name(const struct append_body *b, const struct body_member *m)
{
    return b->names.data + m->name_at;
}
