#include "target/archive/member_unpack.h"

#include <string.h>

#include "common/mem.h"
#include "sort/archive/unarchiver.h"
#include "target/archive/archive_source.h"
#include "target/archive/member_table.h"

enum { PIECE_BYTES = 64 << 10 };

struct unpacking {
    struct archive_source *source;
    uint64_t at; /* of the archive: the next byte */
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
    static const struct unarchiver_limits limits = UNARCHIVER_LIMITS;
    *u = (struct unpacking){.source = s};
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

/* --- the table -------------------------------------------------------------------------------- */

static enum member_kind kind_of(const struct unarchiver_member *m)
{
    enum member_kind kind = member_kind_of(m->type);
    return kind == MEMBER_FILE && m->encrypted ? MEMBER_ENCRYPTED : kind;
}

/* Of a member whose size stands behind its bytes, as in a zip that was written to a pipe. */
static int count_bytes(struct unpacking *u, uint64_t *out, struct error *err)
{
    ssize_t n;
    *out = 0;
    if (u->piece == NULL)
        u->piece = xmalloc(PIECE_BYTES);
    while ((n = unarchiver_read(u->archive, u->piece, PIECE_BYTES, err)) > 0)
        *out += (uint64_t)n;
    return (int)n;
}

static int add(struct unpacking *u, const struct unarchiver_member *m, uint64_t turn,
               struct member_table *t, struct error *err)
{
    /* Reading it may change the texts. */
    _cleanup_free_ char *name = xstrdup(m->path);
    struct member_place place = {.name = name,
                                 .name_len = strlen(name),
                                 .kind = kind_of(m),
                                 .offset = turn,
                                 .size = m->size,
                                 .mtime_s = m->mtime};
    int code = place.kind == MEMBER_FILE && !m->size_known ? count_bytes(u, &place.size, err) : 0;
    if (code != 0)
        return code;
    member_table_add(t, &place);
    return u->source->go_on(u->source->ctx, err);
}

int member_unpack_scan(struct archive_source *s, struct member_table *t, struct error *err)
{
    struct unpacking u;
    struct unarchiver_member m;
    uint64_t turn = 0;
    int rc = begin(&u, s, err);
    member_table_set_packed(t);
    while (rc == 0 && (rc = unarchiver_next(u.archive, &m, err)) > 0)
        rc = add(&u, &m, turn++, t, err);
    end(&u);
    return archive_source_explain(s, rc, err);
}

/* --- one member ------------------------------------------------------------------------------- */

static int find(struct unpacking *u, uint64_t turn, struct error *err)
{
    struct unarchiver_member m;
    int rc = 1;
    for (uint64_t i = 0; i <= turn && rc > 0; i++)
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
