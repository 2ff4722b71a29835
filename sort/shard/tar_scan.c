/* The scanner: from header to header by arithmetic.
 *
 * Reads go through a window.  Where contents are small the next header is usually in it already, so
 * it is read wide; after a jump of more bytes than a system call is worth only the header is read,
 * so that a scan does not drag contents through memory.
 *
 * A disk wants it otherwise: jumps of some ten KiB cost it as much as reading everything between.
 * So while jumps are shorter than READAHEAD_JUMP the kernel is asked to read ahead, contents
 * included (they will be wanted soon); beyond, only headers leave the disk. */
#include "sort/shard/tar.h"

#include <fcntl.h>
#include <stdbool.h>

#include "common/buf.h"
#include "common/mem.h"
#include "io/file.h"
#include "sort/shard/tar_header.h"
#include "sort/shard/tar_pax.h"

#define WINDOW_WIDE 65536
#define WINDOW_NARROW_MAX 4096
#define JUMP_WIDE 4096 /* bytes skipped beyond the window, above which it is read narrow */
#define READAHEAD_JUMP (128 * 1024)
#define READAHEAD_STEP (4 * 1024 * 1024)

/* What stands before a member's own header. */
struct prelude {
    bool any;
    uint64_t start; /* of its first block */
    bool has_pax, has_name, has_link, is_sparse;
    uint64_t pax_start, pax_end; /* blocks of the extended header */
    struct buf pax, name, link;
};

struct tar_scan {
    int fd;
    uint64_t base; /* where in the file the tar begins */
    uint64_t size;
    char *shard;
    int (*check)(void *ctx, struct error *err); /* or NULL */
    void *check_ctx;
    tar_read_fn *read; /* in place of fd, or NULL */
    void *read_ctx;
    bool sparse_too;
    uint64_t offset; /* of the next block */
    bool ended;
    uint64_t advised; /* up to here the kernel has been asked to read ahead */
    unsigned char *window;
    uint64_t window_offset;
    size_t window_len;
    size_t narrow; /* bytes of headers that the last member had: the next one's, most likely */
    struct buf globals;
    struct prelude prelude;
    struct buf folded; /* the inline extended header of the present member */
    char name[257];
    char link[101];
};

struct tar_scan *tar_scan_new(int fd, uint64_t size, const char *shard)
{
    struct tar_scan *s = xcalloc(1, sizeof *s);
    s->fd = fd;
    s->size = size;
    s->shard = xstrdup(shard);
    s->window = xmalloc(WINDOW_WIDE);
    s->narrow = TAR_BLOCK;
    return s;
}

void tar_scan_check(struct tar_scan *s, int (*check)(void *ctx, struct error *err), void *ctx)
{
    s->check = check;
    s->check_ctx = ctx;
}

void tar_scan_base(struct tar_scan *s, uint64_t base)
{
    s->base = base;
}

void tar_scan_sparse(struct tar_scan *s)
{
    s->sparse_too = true;
}

void tar_scan_source(struct tar_scan *s, tar_read_fn *read, void *ctx)
{
    s->read = read;
    s->read_ctx = ctx;
}

void tar_scan_free(struct tar_scan *s)
{
    if (s == NULL)
        return;
    buf_done(&s->globals);
    buf_done(&s->prelude.pax);
    buf_done(&s->prelude.name);
    buf_done(&s->prelude.link);
    buf_done(&s->folded);
    free(s->window);
    free(s->shard);
    free(s);
}

static int scan_fail(const struct tar_scan *s, int code, uint64_t offset, const char *why,
                     struct error *err)
{
    return error_set(err, code, "shard '%s', byte %llu: %s", s->shard, (unsigned long long)offset,
                     why);
}

static int scan_corrupt(const struct tar_scan *s, uint64_t offset, const char *why,
                        struct error *err)
{
    return scan_fail(s, E_SHARD_CORRUPT, offset, why, err);
}

static int scan_unsupported(const struct tar_scan *s, uint64_t offset, const char *why,
                            struct error *err)
{
    return scan_fail(s, E_SHARD_UNSUPPORTED, offset, why, err);
}

/* Half a step before what was asked for runs out.  Advice: whether it is taken is no concern. */
static void scan_readahead(struct tar_scan *s, uint64_t offset)
{
    if (s->read != NULL || offset + READAHEAD_STEP / 2 < s->advised)
        return;
    uint64_t from = offset > s->advised ? offset : s->advised;
    posix_fadvise(s->fd, (off_t)(s->base + from), READAHEAD_STEP, POSIX_FADV_WILLNEED);
    s->advised = from + READAHEAD_STEP;
}

static int scan_read(const struct tar_scan *s, size_t len, uint64_t offset, struct error *err)
{
    if (s->read != NULL)
        return s->read(s->read_ctx, s->window, len, s->base + offset, err);
    return file_pread_full(s->fd, s->window, len, s->base + offset, err);
}

static int scan_window_fill(struct tar_scan *s, uint64_t offset, struct error *err)
{
    uint64_t window_end = s->window_offset + s->window_len;
    uint64_t jump = offset > window_end ? offset - window_end : 0;
    size_t len = jump > JUMP_WIDE ? s->narrow : WINDOW_WIDE;
    if (len > s->size - offset)
        len = (size_t)(s->size - offset);
    if (jump < READAHEAD_JUMP)
        scan_readahead(s, offset);
    s->window_len = 0;
    int rc = s->check != NULL ? s->check(s->check_ctx, err) : 0;
    if (rc != 0)
        return rc;
    rc = scan_read(s, len, offset, err);
    if (rc == E_LENGTH)
        return scan_corrupt(s, offset, "the file is shorter than its size says", err);
    if (rc != 0)
        return error_wrap(err, "read shard '%s'", s->shard);
    s->window_offset = offset;
    s->window_len = len;
    return 0;
}

/* The block at `offset`, which lies within the file. */
static int scan_block(struct tar_scan *s, uint64_t offset, const unsigned char **block,
                      struct error *err)
{
    if (offset < s->window_offset || offset + TAR_BLOCK > s->window_offset + s->window_len) {
        int rc = scan_window_fill(s, offset, err);
        if (rc != 0)
            return rc;
    }
    *block = s->window + (offset - s->window_offset);
    return 0;
}

/* Contents of an extended or long-name header, whose block is at `offset`. */
static int scan_meta(struct tar_scan *s, uint64_t offset, uint64_t size, struct buf *out,
                     struct error *err)
{
    if (size > TAR_META_MAX)
        return scan_unsupported(s, offset, "an extended header exceeds 1 MiB", err);
    if (tar_padded(size) > s->size - offset - TAR_BLOCK)
        return scan_corrupt(s, offset, "an extended header is cut short", err);
    buf_clear(out);
    uint64_t at = offset + TAR_BLOCK;
    for (uint64_t left = size; left > 0;) {
        const unsigned char *block;
        int rc = scan_block(s, at, &block, err);
        if (rc != 0)
            return rc;
        size_t n = left < TAR_BLOCK ? (size_t)left : TAR_BLOCK;
        buf_append(out, block, n);
        at += TAR_BLOCK;
        left -= n;
    }
    s->offset = offset + TAR_BLOCK + tar_padded(size);
    return 0;
}

static bool pax_is_sparse(const struct pax_record *r)
{
    return r->key_len >= 11 && memcmp(r->key, "GNU.sparse.", 11) == 0;
}

static bool pax_is_own(const struct pax_record *r)
{
    return pax_key_is(r, "path") || pax_key_is(r, "linkpath") || pax_key_is(r, "size") ||
           pax_key_is(r, "hdrcharset");
}

/* Well-formed, and nothing in it that this program would get wrong. */
static int scan_pax_check(struct tar_scan *s, uint64_t offset, struct buf *text, bool global,
                          struct error *err)
{
    const char *at = buf_str(text);
    size_t left = text->len;
    struct pax_record r;
    int rc;
    while ((rc = pax_next(&at, &left, &r)) > 0) {
        if (pax_is_sparse(&r) && (global || !s->sparse_too))
            return scan_unsupported(s, offset, "a sparse file", err);
        s->prelude.is_sparse |= pax_is_sparse(&r);
        if (global && pax_is_own(&r))
            return scan_unsupported(
                s, offset, "a global header that sets path, linkpath, size or hdrcharset", err);
    }
    if (rc < 0)
        return scan_corrupt(s, offset, "a record of an extended header is malformed", err);
    return 0;
}

static int scan_global(struct tar_scan *s, uint64_t offset, uint64_t size, struct error *err)
{
    if (s->prelude.any)
        return scan_unsupported(s, offset, "a global header between the headers of a member", err);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    int rc = scan_meta(s, offset, size, &text, err);
    if (rc == 0)
        rc = scan_pax_check(s, offset, &text, true, err);
    if (rc != 0)
        return rc;
    if (text.len > TAR_GLOBAL_MAX)
        return scan_unsupported(s, offset, "a global header exceeds 8 KiB", err);
    pax_globals_update(&s->globals, buf_str(&text), text.len);
    if (s->globals.len > TAR_GLOBAL_MAX)
        return scan_unsupported(s, offset, "the global headers exceed 8 KiB", err);
    return 0;
}

static void scan_prelude_begin(struct tar_scan *s, uint64_t offset)
{
    if (!s->prelude.any)
        s->prelude.start = offset;
    s->prelude.any = true;
}

static int scan_pax(struct tar_scan *s, uint64_t offset, uint64_t size, struct error *err)
{
    struct prelude *p = &s->prelude;
    if (p->has_pax)
        return scan_unsupported(s, offset, "two extended headers before one member", err);
    scan_prelude_begin(s, offset);
    int rc = scan_meta(s, offset, size, &p->pax, err);
    if (rc == 0)
        rc = scan_pax_check(s, offset, &p->pax, false, err);
    p->has_pax = true;
    p->pax_start = offset;
    p->pax_end = s->offset;
    return rc;
}

static int scan_long(struct tar_scan *s, uint64_t offset, uint64_t size, bool *has,
                     struct buf *text, struct error *err)
{
    if (*has)
        return scan_unsupported(s, offset, "two long names before one member", err);
    scan_prelude_begin(s, offset);
    int rc = scan_meta(s, offset, size, text, err);
    if (rc != 0)
        return rc;
    *has = true;
    text->len = strnlen(buf_str(text), text->len);
    return 0;
}

/* A path or link target out of the extended header, where it has one. */
static void scan_pax_text(struct tar_scan *s, const char *key, const char **text, size_t *len)
{
    if (!s->prelude.has_pax)
        return;
    const char *at = buf_str(&s->prelude.pax);
    size_t left = s->prelude.pax.len;
    struct pax_record r;
    while (pax_next(&at, &left, &r) > 0) {
        if (pax_key_is(&r, key)) {
            *text = r.value;
            *len = r.value_len;
        }
    }
}

static int scan_names(struct tar_scan *s, const struct tar_header *h, struct tar_member *m,
                      struct error *err)
{
    memcpy(s->name, h->name, h->name_len + 1);
    memcpy(s->link, h->link, h->link_len + 1);
    m->path = s->prelude.has_name ? buf_str(&s->prelude.name) : s->name;
    m->path_len = s->prelude.has_name ? s->prelude.name.len : h->name_len;
    m->link = s->prelude.has_link ? buf_str(&s->prelude.link) : s->link;
    m->link_len = s->prelude.has_link ? s->prelude.link.len : h->link_len;
    scan_pax_text(s, "path", &m->path, &m->path_len);
    scan_pax_text(s, "GNU.sparse.name", &m->path, &m->path_len);
    scan_pax_text(s, "linkpath", &m->link, &m->link_len);
    if (m->path_len == 0)
        return scan_corrupt(s, m->offset, "a member without a name", err);
    if (m->path_len > TAR_PATH_MAX)
        return scan_unsupported(s, m->offset, "a path exceeds 65535 bytes", err);
    if (memchr(m->path, '\0', m->path_len) != NULL || memchr(m->link, '\0', m->link_len) != NULL)
        return scan_corrupt(s, m->offset, "a path with a NUL in it", err);
    return 0;
}

static int scan_size(struct tar_scan *s, uint64_t *size, struct error *err)
{
    if (!s->prelude.has_pax)
        return 0;
    const char *at = buf_str(&s->prelude.pax);
    size_t left = s->prelude.pax.len;
    struct pax_record r;
    while (pax_next(&at, &left, &r) > 0) {
        /* An empty value means that the header's own field counts. */
        if (pax_key_is(&r, "size") && r.value_len > 0 && pax_number(&r, size) != 0)
            return scan_corrupt(s, s->prelude.start, "its size is not a number", err);
    }
    return 0;
}

/* The Seventh Edition knew directories by the slash at the end of their names. */
static char scan_type(const struct tar_header *h, const struct tar_member *m)
{
    return h->type == '0' && m->path[m->path_len - 1] == '/' ? '5' : h->type;
}

/* How many bytes follow the header.  POSIX gives links, devices and directories no contents, but
 * where their size is not zero some readers skip that much and others do not. */
static int scan_contents(const struct tar_scan *s, const struct tar_member *m, uint64_t stated,
                         uint64_t *contents, struct error *err)
{
    *contents = stated;
    switch (m->type) {
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
        if (stated != 0)
            return scan_unsupported(s, m->offset, "a link, device or directory with a size", err);
        return 0;
    case 'S':
        return s->sparse_too ? 0 : scan_unsupported(s, m->offset, "a sparse file", err);
    case 'D':
    case 'M':
    case 'N':
    case 'V':
        return scan_unsupported(s, m->offset, "a GNU incremental or multi-volume archive", err);
    default:
        return 0;
    }
}

static void member_add_range(struct tar_member *m, uint64_t from, uint64_t to)
{
    if (from < to)
        m->pieces[m->piece_count++] = (struct tar_piece){.offset = from, .length = to - from};
}

/* The extended header that the globals make of the member's own; empty where they add nothing. */
static void scan_fold(struct tar_scan *s)
{
    buf_clear(&s->folded);
    if (s->globals.len == 0)
        return;
    const struct buf *own = &s->prelude.pax;
    size_t own_len = s->prelude.has_pax ? own->len : 0;
    unsigned char block[TAR_BLOCK] = {0};
    buf_append(&s->folded, block, sizeof block);
    pax_fold(&s->globals, own_len > 0 ? own->data : "", own_len, &s->folded);
    size_t len = s->folded.len - TAR_BLOCK;
    if (len == own_len) {
        buf_clear(&s->folded);
        return;
    }
    buf_append(&s->folded, block, (size_t)tar_padded(len) - len);
    tar_header_make_pax((unsigned char *)s->folded.data, len);
}

static void scan_pieces(struct tar_scan *s, struct tar_member *m, uint64_t end)
{
    const struct prelude *p = &s->prelude;
    m->piece_count = 0;
    scan_fold(s);
    if (s->folded.len == 0) {
        member_add_range(m, m->offset, end);
        return;
    }
    m->pieces[m->piece_count++] =
        (struct tar_piece){.inline_data = s->folded.data, .length = s->folded.len};
    if (!p->has_pax) {
        member_add_range(m, m->offset, end);
        return;
    }
    member_add_range(m, m->offset, p->pax_start);
    member_add_range(m, p->pax_end, end);
}

/* The seconds of "1700000000.123456"; false: none. */
static bool pax_seconds(const struct pax_record *r, int64_t *out)
{
    bool negative = r->value_len > 0 && r->value[0] == '-';
    size_t i = negative ? 1 : 0;
    int64_t seconds = 0;
    for (; i < r->value_len && r->value[i] >= '0' && r->value[i] <= '9'; i++) {
        if (seconds > INT64_MAX / 10 - 1)
            return false;
        seconds = seconds * 10 + (r->value[i] - '0');
    }
    *out = negative ? -seconds : seconds;
    return i > (negative ? 1 : 0);
}

static void scan_mtime(struct tar_scan *s, struct tar_member *m)
{
    const char *at = buf_str(&s->prelude.pax);
    size_t left = s->prelude.has_pax ? s->prelude.pax.len : 0;
    struct pax_record r;
    while (pax_next(&at, &left, &r) > 0) {
        if (pax_key_is(&r, "mtime"))
            (void)pax_seconds(&r, &m->mtime_s); /* else the header's counts */
    }
}

/* The old GNU form of a sparse file has more blocks of its map behind the header. */
static int scan_sparse_map(struct tar_scan *s, const unsigned char *block, uint64_t *contents,
                           struct error *err)
{
    enum { MORE_IN_HEADER = 482, MORE_IN_MAP = 504 };
    bool more = block[MORE_IN_HEADER] != 0;
    while (more) {
        if (s->size - *contents < TAR_BLOCK)
            return scan_corrupt(s, *contents, "the map of a sparse file is cut short", err);
        int rc = scan_block(s, *contents, &block, err);
        if (rc != 0)
            return rc;
        more = block[MORE_IN_MAP] != 0;
        *contents += TAR_BLOCK;
    }
    return 0;
}

/* Where its contents are, and how long; s->offset becomes that of the next header. */
static int scan_place(struct tar_scan *s, uint64_t offset, const unsigned char *block,
                      uint64_t stated, struct tar_member *m, struct error *err)
{
    uint64_t contents = offset + TAR_BLOCK;
    int rc = scan_size(s, &stated, err);
    if (rc == 0)
        rc = scan_contents(s, m, stated, &m->contents_size, err);
    if (rc == 0 && m->type == 'S')
        rc = scan_sparse_map(s, block, &contents, err);
    if (rc != 0)
        return rc;
    uint64_t left = s->size - contents;
    if (m->contents_size > left || tar_padded(m->contents_size) > left)
        return scan_corrupt(s, offset, "a member's contents reach past the end of the file", err);
    m->contents_offset = contents;
    s->offset = contents + tar_padded(m->contents_size);
    return 0;
}

static int scan_member(struct tar_scan *s, uint64_t offset, const unsigned char *block,
                       const struct tar_header *h, struct tar_member *m, struct error *err)
{
    m->offset = s->prelude.any ? s->prelude.start : offset;
    m->mtime_s = tar_header_mtime(block);
    scan_mtime(s, m);
    int rc = scan_names(s, h, m, err);
    if (rc != 0)
        return rc;
    m->type = scan_type(h, m);
    m->sparse = m->type == 'S' || s->prelude.is_sparse;
    if ((rc = scan_place(s, offset, block, h->size, m, err)) != 0)
        return rc;
    uint64_t headers = offset + TAR_BLOCK - m->offset;
    s->narrow = headers < WINDOW_NARROW_MAX ? (size_t)headers : WINDOW_NARROW_MAX;
    scan_pieces(s, m, s->offset);
    s->prelude.any = false;
    s->prelude.has_pax = s->prelude.has_name = s->prelude.has_link = s->prelude.is_sparse = false;
    return 1;
}

/* From the first zero block on nothing but zeros may come: the second one, and filling. */
static int scan_end(struct tar_scan *s, uint64_t offset, struct error *err)
{
    if (s->prelude.any)
        return scan_corrupt(s, offset, "the archive ends between the headers of a member", err);
    static const unsigned char zeros[TAR_BLOCK];
    while (offset < s->size) {
        size_t n = s->size - offset < TAR_BLOCK ? (size_t)(s->size - offset) : TAR_BLOCK;
        if (offset + n > s->window_offset + s->window_len) {
            s->window_len = 0; /* read wide: it goes on from here */
            s->window_offset = offset;
            int rc = scan_window_fill(s, offset, err);
            if (rc != 0)
                return rc;
        }
        if (memcmp(s->window + (offset - s->window_offset), zeros, n) != 0)
            return scan_corrupt(s, offset, "something follows the end of the archive", err);
        offset += n;
    }
    s->ended = true;
    return 0;
}

static int scan_header(struct tar_scan *s, const unsigned char *block, struct tar_member *m,
                       struct error *err)
{
    struct tar_header h;
    uint64_t offset = s->offset;
    const char *why = tar_header_parse(block, &h);
    if (why != NULL)
        return error_set(err, E_SHARD_CORRUPT, "shard '%s', byte %llu: a header: %s", s->shard,
                         (unsigned long long)offset, why);
    switch (h.type) {
    case 'g':
        return scan_global(s, offset, h.size, err);
    case 'x':
    case 'X': /* Solaris' name for the same */
        return scan_pax(s, offset, h.size, err);
    case 'L':
        return scan_long(s, offset, h.size, &s->prelude.has_name, &s->prelude.name, err);
    case 'K':
        return scan_long(s, offset, h.size, &s->prelude.has_link, &s->prelude.link, err);
    default:
        return scan_member(s, offset, block, &h, m, err);
    }
}

int tar_scan_next(struct tar_scan *s, struct tar_member *m, struct error *err)
{
    if (s->size == 0 || s->ended)
        return 0;
    for (;;) {
        if (s->offset == s->size)
            return scan_corrupt(
                s, s->offset, "the file ends without the archive's end mark: it is cut short", err);
        if (s->size - s->offset < TAR_BLOCK)
            return scan_corrupt(s, s->offset, "a header is cut short", err);
        const unsigned char *block;
        int rc = scan_block(s, s->offset, &block, err);
        if (rc != 0)
            return rc;
        if (tar_header_is_zero(block))
            return scan_end(s, s->offset, err);
        rc = scan_header(s, block, m, err);
        if (rc != 0)
            return rc;
    }
}
