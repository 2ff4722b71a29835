#include "target/archive/member_unpack.h"

#include <string.h>

#include "common/mem.h"
#include "target/archive/archive_source.h"
#include "target/node/target.h"

enum { PIECE_BYTES = 64 << 10 };

struct unpacking {
    struct archive_source *source;
    uint64_t at;   /* of the archive: the next byte */
    uint64_t turn; /* of the next member */
    struct unarchiver *archive;
    char *piece;
};

static ssize_t read_more(void *ctx, void *to, size_t max, struct error *err)
{
    struct unpacking *u = ctx;
    const uint64_t left = u->source->object->attr.size - u->at;
    const size_t len = left < max ? (size_t)left : max;
    int code = u->source->go_on(u->source->ctx, err);
    if (code == 0 && len > 0)
        code = archive_source_read(u->source, to, len, u->at, err);
    if (code != 0)
        return code;
    u->at += len;
    return (ssize_t)len;
}

static int seek_to(void *ctx, uint64_t offset, struct error *err)
{
    struct unpacking *u = ctx;
    (void)err;
    u->at = offset;
    return 0;
}

static int begin(struct unpacking *u, struct archive_source *s, struct error *err)
{
    struct unarchiver_limits limits = UNARCHIVER_LIMITS;
    *u = (struct unpacking){.source = s};
    int code = unarchiver_formats_parse(s->target->params.archive_formats, &limits.formats, err);
    if (code != 0)
        return code;
    const struct unarchiver_source source = {.read = read_more,
                                             .seek = seek_to,
                                             .ctx = u,
                                             .size = s->object->attr.size,
                                             .what = "libarchive"};
    return unarchiver_open(&source, &limits, &u->archive, err);
}

static void end(struct unpacking *u)
{
    unarchiver_free(u->archive);
    free(u->piece);
}

/* --- all of them ------------------------------------------------------------------------------ */

enum member_kind member_unpack_kind(const struct unarchiver_member *m)
{
    enum member_kind kind = member_kind_of(m->type);
    return kind == MEMBER_FILE && m->encrypted ? MEMBER_ENCRYPTED : kind;
}

int member_unpack_each(struct archive_source *s, unpack_each_fn *fn, void *ctx, struct error *err)
{
    struct unpacking u;
    struct unarchiver_member m;
    int rc = begin(&u, s, err);
    for (uint64_t turn = 0; rc == 0 && (rc = unarchiver_next(u.archive, &m, err)) > 0; turn++) {
        rc = fn(ctx, u.archive, &m, turn, err);
        if (rc == 0)
            rc = s->go_on(s->ctx, err);
    }
    end(&u);
    return archive_source_explain(s, rc, err);
}

/* --- the table -------------------------------------------------------------------------------- */

struct listing {
    struct member_table *table;
    char *piece;
};

/* Of a member whose size stands behind its bytes, as in a zip that was written to a pipe. */
static int count_bytes(struct listing *l, struct unarchiver *archive, uint64_t *out,
                       struct error *err)
{
    ssize_t n;
    *out = 0;
    if (l->piece == NULL)
        l->piece = xmalloc(PIECE_BYTES);
    while ((n = unarchiver_read(archive, l->piece, PIECE_BYTES, err)) > 0)
        *out += (uint64_t)n;
    return (int)n;
}

static int add(void *ctx, struct unarchiver *archive, const struct unarchiver_member *m,
               uint64_t turn, struct error *err)
{
    struct listing *l = ctx;
    /* Reading it may change the texts. */
    _cleanup_free_ char *name = xstrdup(m->path);
    struct member_place place = {.name = name,
                                 .name_len = strlen(name),
                                 .kind = member_unpack_kind(m),
                                 .offset = turn,
                                 .size = m->size,
                                 .mtime_s = m->mtime};
    int code =
        place.kind == MEMBER_FILE && !m->size_known ? count_bytes(l, archive, &place.size, err) : 0;
    if (code == 0)
        member_table_add(l->table, &place);
    return code;
}

int member_unpack_scan(struct archive_source *s, struct member_table *t, struct error *err)
{
    struct listing l = {.table = t};
    member_table_set_packed(t);
    int code = member_unpack_each(s, add, &l, err);
    free(l.piece);
    return code;
}

/* Twice `expand_free`: a reader of a zip may take some bytes of it more than once, and the limit is
 * of what it took. */
int member_unpack_check_size(uint64_t archive_size, uint64_t size, struct error *err)
{
    const struct unarchiver_limits limits = UNARCHIVER_LIMITS;
    const uint64_t ratio = limits.expand_ratio;
    uint64_t most = 2 * limits.expand_free;
    most += archive_size < limits.member_size / ratio ? archive_size * ratio : limits.member_size;
    if (most > limits.member_size)
        most = limits.member_size;
    return size <= most
               ? 0
               : error_set(err, E_ARCHIVE_LIMIT,
                           "the archive states %llu bytes for its contents: at most %llu are "
                           "unpacked of %llu bytes",
                           (unsigned long long)size, (unsigned long long)most,
                           (unsigned long long)archive_size);
}

/* --- one member ------------------------------------------------------------------------------- */

static int find(struct unpacking *u, uint64_t turn, struct error *err)
{
    struct unarchiver_member m;
    int rc = 1;
    for (; u->turn <= turn && rc > 0; u->turn++)
        rc = unarchiver_next(u->archive, &m, err);
    if (rc == 0)
        rc = error_set(err, E_SHARD_CORRUPT, "it has fewer members than before");
    return rc < 0 ? rc : 0;
}

static int check_end(struct unpacking *u, struct error *err)
{
    char more;
    ssize_t n = unarchiver_read(u->archive, &more, sizeof more, err);
    return n <= 0 ? (int)n : error_set(err, E_SHARD_CORRUPT, "the member is longer than before");
}

/* What is before the part is unpacked, too. */
static int give(struct unpacking *u, const struct unpack_part *part, unpack_fn *take, void *ctx,
                struct error *err)
{
    const uint64_t part_end = part->offset + part->length;
    if (u->piece == NULL)
        u->piece = xmalloc(PIECE_BYTES);
    int code = 0;
    for (uint64_t at = 0, n; at < part_end && code == 0; at += n) {
        ssize_t got = unarchiver_read(u->archive, u->piece, PIECE_BYTES, err);
        if (got <= 0)
            return got < 0 ? (int)got
                           : error_set(err, E_SHARD_CORRUPT, "the member is shorter than before");
        n = (uint64_t)got;
        const uint64_t from = at < part->offset ? part->offset : at;
        const uint64_t to = at + n < part_end ? at + n : part_end;
        if (at + n >= part->size)
            code = check_end(u, err);
        if (code == 0 && from < to)
            code = take(ctx, u->piece + (from - at), (size_t)(to - from), err);
    }
    return code;
}

int member_unpack(struct archive_source *s, const struct unpack_part *part, unpack_fn *take,
                  void *ctx, struct error *err)
{
    struct unpacking u;
    int code = begin(&u, s, err);
    if (code == 0)
        code = find(&u, part->turn, err);
    if (code == 0)
        code = give(&u, part, take, ctx, err);
    end(&u);
    return archive_source_explain(s, code, err);
}

int member_unpack_parts(struct archive_source *s, const struct unpack_part *parts, size_t count,
                        int (*begin_one)(void *ctx, size_t i, struct error *err), unpack_fn *take,
                        void *ctx, struct error *err)
{
    struct unpacking u;
    int code = begin(&u, s, err);
    for (size_t i = 0; i < count && code == 0; i++) {
        if ((code = find(&u, parts[i].turn, err)) == 0 && (code = begin_one(ctx, i, err)) == 0)
            code = give(&u, &parts[i], take, ctx, err);
    }
    end(&u);
    return archive_source_explain(s, code, err);
}
