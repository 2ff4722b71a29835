/* A payload is numbers (varints) and texts (length, bytes), and begins with its kind:
 *
 *     by path     KEPT: offset, pieces     DROPPED     LINK, BAD_LINK: the link's path, its target
 *     by record   KEPT: pieces             DROPPED     BAD_LINK: the same
 *     by rank     name, inline bytes, pieces: count, and for each: inline? (0, 1), offset, length
 *
 * A member's pieces: count, and for each: inline? (0, 1), the bytes as a text, or offset and
 * length. Dropped members come along for the position that they may have given to their record. */
#include "sort/shard/regroup.h"

#include "common/mem.h"
#include "io/varint.h"
#include "sort/rows/items.h"
#include "sort/base/last_bytes.h"
#include "sort/spec/order.h"

#define CHECK_EVERY 4096 /* items */
#define AFTER_MEMBERS \
    (UINT64_C(1) << 62) /* links' ranks under a path: all members come before them */

enum kind { KEPT, DROPPED, LINK, BAD_LINK, KINDS };

struct regroup {
    struct group_config config;
    struct items *paths, *members, *records;
    uint64_t rank;      /* of the next member */
    uint64_t spilled;   /* by those that are gone */
    uint64_t looked;    /* at so many items */
    struct buf payload; /* that is being written */
    /* The path, or the record, that is being looked at, and its last member that is kept. */
    struct buf key;
    bool any, kept;
    uint64_t first_rank, kept_rank;
    struct buf kept_pieces; /* as they are in the payload */
    /* Of the record that is put together, or is out. */
    struct buf pieces;
    struct buf inlines;
    struct last_bytes last_inline;
};

int regroup_new(const struct group_config *config, struct regroup **out, struct error *err)
{
    _cleanup_(regroup_freep)
    struct regroup *r = xcalloc(1, sizeof *r);
    r->config = *config;
    int rc = items_new(config->env, config->memory / 2, &r->paths, err);
    if (rc == 0)
        *out = steal(r);
    return rc;
}

void regroup_free(struct regroup *r)
{
    if (r == NULL)
        return;
    items_free(r->paths);
    items_free(r->members);
    items_free(r->records);
    buf_done(&r->payload);
    buf_done(&r->key);
    buf_done(&r->kept_pieces);
    buf_done(&r->pieces);
    buf_done(&r->inlines);
    free(r);
}

/* --- payloads -----------------------------------------------------------------------------------
 */

static void put_number(struct buf *out, uint64_t value)
{
    unsigned char bytes[VARINT_MAX];
    buf_append(out, bytes, varint_put(bytes, value));
}

static void put_text(struct buf *out, const char *text, size_t len)
{
    put_number(out, len);
    buf_append(out, text, len);
}

static void put_member_pieces(struct buf *out, const struct tar_member *m)
{
    put_number(out, m->piece_count);
    for (unsigned i = 0; i < m->piece_count; i++) {
        const struct tar_piece *p = &m->pieces[i];
        put_number(out, p->inline_data != NULL);
        if (p->inline_data != NULL) {
            put_text(out, p->inline_data, p->length);
        } else {
            put_number(out, p->offset);
            put_number(out, p->length);
        }
    }
}

/* Reading: a disk may have changed them. */
struct reader {
    const unsigned char *at;
    size_t left;
    bool bad;
};

static struct reader reader_of(const struct item *item)
{
    return (struct reader){.at = item->payload, .left = item->len};
}

static uint64_t get_number(struct reader *r)
{
    uint64_t value = 0;
    size_t n = r->bad ? 0 : varint_get(r->at, r->left, &value);
    r->bad = n == 0;
    r->at += n;
    r->left -= n;
    return r->bad ? 0 : value;
}

static const char *get_text(struct reader *r, size_t *len)
{
    uint64_t n = get_number(r);
    r->bad = r->bad || n > r->left;
    *len = r->bad ? 0 : (size_t)n;
    const char *text = (const char *)r->at;
    r->at += *len;
    r->left -= *len;
    return text;
}

static enum kind get_kind(struct reader *r)
{
    uint64_t kind = get_number(r);
    r->bad = r->bad || kind >= KINDS;
    return r->bad ? DROPPED : (enum kind)kind;
}

static int reader_end(const struct reader *r, struct error *err)
{
    if (!r->bad && r->left == 0)
        return 0;
    return error_set(err, E_CORRUPT, "a work file does not hold what was written into it");
}

/* --- by path ------------------------------------------------------------------------------------
 */

/* Under its target's path; under its own where that can be no member of its record. */
static int add_link(struct regroup *r, const struct tar_member *m, struct error *err)
{
    size_t key_len = record_key_len(m->path, m->path_len, r->config.rule);
    bool same_record = m->link_len <= SORT_NAME_MAX && memchr(m->link, '\0', m->link_len) == NULL &&
                       record_key_len(m->link, m->link_len, r->config.rule) == key_len &&
                       memcmp(m->link, m->path, key_len) == 0;
    buf_clear(&r->payload);
    put_number(&r->payload, same_record ? LINK : BAD_LINK);
    put_text(&r->payload, m->path, m->path_len);
    put_text(&r->payload, m->link, m->link_len);
    return items_add(r->paths, same_record ? m->link : m->path,
                     same_record ? m->link_len : m->path_len, AFTER_MEMBERS | r->rank, &r->payload,
                     err);
}

int regroup_add(struct regroup *r, const struct tar_member *m, bool dropped, struct error *err)
{
    buf_clear(&r->payload);
    put_number(&r->payload, dropped ? DROPPED : KEPT);
    if (!dropped) {
        put_number(&r->payload, m->offset);
        put_member_pieces(&r->payload, m);
    }
    int rc = items_add(r->paths, m->path, m->path_len, r->rank, &r->payload, err);
    if (rc == 0 && !dropped && m->type == '1')
        rc = add_link(r, m, err);
    r->rank++;
    return rc;
}

/* `rank` is that of a member; a complaint comes right after it. */
static int add_to_record(struct regroup *r, const char *path, size_t len, enum kind kind,
                         uint64_t rank, struct error *err)
{
    size_t key_len = record_key_len(path, len, r->config.rule);
    return items_add(r->members, path, key_len, 2 * rank + (kind == BAD_LINK), &r->payload, err);
}

static int path_member(struct regroup *r, enum kind kind, uint64_t rank, struct error *err)
{
    buf_clear(&r->payload);
    put_number(&r->payload, kind);
    if (kind == KEPT)
        buf_append(&r->payload, r->kept_pieces.data, r->kept_pieces.len);
    return add_to_record(r, r->key.data, r->key.len, kind, rank, err);
}

static int path_close(struct regroup *r, struct error *err)
{
    bool kept = r->kept;
    r->kept = false;
    return kept ? path_member(r, KEPT, r->kept_rank, err) : 0;
}

/* An earlier one of this path is dropped for it. */
static int path_kept(struct regroup *r, const struct item *item, struct reader *in,
                     struct error *err)
{
    uint64_t offset = get_number(in);
    int len = (int)(r->key.len < 256 ? r->key.len : 256);
    if (r->kept && r->config.duplicates == SORT_ABORT)
        return error_set(err, E_DUPLICATE_RECORD, "shard '%s', byte %llu: '%.*s' comes twice",
                         r->config.shard, (unsigned long long)offset, len, r->key.data);
    if (r->kept) {
        int rc = path_member(r, DROPPED, r->kept_rank, err);
        if (rc != 0)
            return rc;
        r->config.replaced(r->config.ctx, r->key.data, r->key.len);
    }
    r->kept = true;
    r->kept_rank = item->rank;
    buf_clear(&r->kept_pieces);
    buf_append(&r->kept_pieces, in->at, in->left);
    return 0;
}

static int path_link(struct regroup *r, const struct item *item, enum kind kind, struct reader *in,
                     struct error *err)
{
    uint64_t rank = item->rank & ~AFTER_MEMBERS;
    if (kind == LINK && r->kept && r->kept_rank < rank)
        return 0;
    buf_clear(&r->payload);
    put_number(&r->payload, BAD_LINK);
    buf_append(&r->payload, in->at, in->left);
    size_t len = 0;
    const char *path = get_text(in, &len);
    return in->bad ? reader_end(in, err) : add_to_record(r, path, len, BAD_LINK, rank, err);
}

static bool same_key(const struct regroup *r, const struct item *item)
{
    return r->any && r->key.len == item->key_len &&
           memcmp(r->key.data, item->key, item->key_len) == 0;
}

static void key_open(struct regroup *r, const struct item *item)
{
    buf_clear(&r->key);
    buf_append(&r->key, item->key, item->key_len);
    r->any = true;
    r->kept = false;
    r->first_rank = item->rank;
}

static int path_item(struct regroup *r, const struct item *item, struct error *err)
{
    int rc = same_key(r, item) ? 0 : path_close(r, err);
    if (rc != 0)
        return rc;
    if (!same_key(r, item))
        key_open(r, item);
    struct reader in = reader_of(item);
    enum kind kind = get_kind(&in);
    if (in.bad)
        return reader_end(&in, err);
    if (kind == KEPT)
        return path_kept(r, item, &in, err);
    return kind == DROPPED ? path_member(r, DROPPED, item->rank, err)
                           : path_link(r, item, kind, &in, err);
}

/* --- by record ----------------------------------------------------------------------------------
 */

static void record_piece(struct regroup *r, struct reader *in)
{
    struct record_piece p = {.is_inline = get_number(in) != 0};
    if (p.is_inline) {
        size_t len = 0;
        const char *bytes = get_text(in, &len);
        p.offset = last_bytes_put(&r->last_inline, &r->inlines, bytes, len);
        p.length = len;
    } else {
        p.offset = get_number(in);
        p.length = get_number(in);
    }
    record_pieces_append(&r->pieces, 0, &p);
}

static int record_kept(struct regroup *r, const struct item *item, struct reader *in,
                       struct error *err)
{
    for (uint64_t left = get_number(in); left > 0 && !in->bad; left--)
        record_piece(r, in);
    r->kept = true;
    r->kept_rank = item->rank;
    if (r->pieces.len + r->inlines.len > r->config.record_memory)
        return error_set(
            err, E_NOMEM,
            "shard '%s': the members of record '%.*s' are too far apart to be held in the "
            "memory that max_mem_usage gives to one record; is it the right key_rule?",
            r->config.shard, (int)(r->key.len < 256 ? r->key.len : 256), r->key.data);
    return reader_end(in, err);
}

/* The link may have been dropped itself. */
static int record_complaint(struct regroup *r, const struct item *item, struct reader *in,
                            struct error *err)
{
    size_t path_len = 0;
    size_t link_len = 0;
    const char *path = get_text(in, &path_len);
    const char *link = get_text(in, &link_len);
    int rc = reader_end(in, err);
    if (rc != 0 || !r->kept || r->kept_rank + 1 != item->rank)
        return rc;
    return record_link_error(r->config.shard, path, path_len, link, link_len, err);
}

static int record_close(struct regroup *r, struct error *err)
{
    if (!r->any)
        return 0;
    r->any = false;
    const struct record_piece *pieces = (const void *)r->pieces.data;
    size_t count = r->pieces.len / sizeof *pieces;
    buf_clear(&r->payload);
    put_text(&r->payload, r->key.data, r->key.len);
    put_text(&r->payload, buf_str(&r->inlines), r->inlines.len);
    put_number(&r->payload, count);
    for (size_t i = 0; i < count; i++) {
        put_number(&r->payload, pieces[i].is_inline);
        put_number(&r->payload, pieces[i].offset);
        put_number(&r->payload, pieces[i].length);
    }
    return items_add(r->records, "", 0, r->first_rank, &r->payload, err);
}

static void record_open(struct regroup *r, const struct item *item)
{
    key_open(r, item);
    buf_clear(&r->pieces);
    buf_clear(&r->inlines);
    r->last_inline = (struct last_bytes){0};
}

static int record_item(struct regroup *r, const struct item *item, struct error *err)
{
    int rc = same_key(r, item) ? 0 : record_close(r, err);
    if (rc != 0)
        return rc;
    if (!same_key(r, item))
        record_open(r, item);
    struct reader in = reader_of(item);
    enum kind kind = get_kind(&in);
    if (kind == KEPT)
        return record_kept(r, item, &in, err);
    return kind == BAD_LINK ? record_complaint(r, item, &in, err) : reader_end(&in, err);
}

/* --- one pass after the other -------------------------------------------------------------------
 */

/* Every item of `from`, in order, goes through each(), and what that makes goes into *to; `from` is
 * gone then. */
static int pass(struct regroup *r, struct items **from, struct items **to,
                int (*each)(struct regroup *r, const struct item *item, struct error *err),
                int (*close)(struct regroup *r, struct error *err), struct error *err)
{
    int rc = items_new(r->config.env, r->config.memory / 2, to, err);
    if (rc == 0)
        rc = items_open(*from, err);
    struct item item;
    r->any = r->kept = false;
    while (rc == 0 && (rc = items_next(*from, &item, err)) > 0) {
        rc = r->looked++ % CHECK_EVERY == 0 ? r->config.check(r->config.ctx, err) : 0;
        if (rc == 0)
            rc = each(r, &item, err);
    }
    if (rc == 0)
        rc = close(r, err);
    r->spilled += items_spilled(*from);
    items_free(steal(*from));
    return rc;
}

int regroup_finish(struct regroup *r, struct error *err)
{
    int rc = pass(r, &r->paths, &r->members, path_item, path_close, err);
    if (rc == 0)
        rc = pass(r, &r->members, &r->records, record_item, record_close, err);
    if (rc == 0 && items_count(r->records) > SORT_POSITION_MAX)
        rc = error_set(err, E_SHARD_UNSUPPORTED, "shard '%s' has more than %u records",
                       r->config.shard, SORT_POSITION_MAX);
    return rc != 0 ? rc : items_open(r->records, err);
}

uint64_t regroup_count(const struct regroup *r)
{
    return items_count(r->records);
}

uint64_t regroup_spilled(const struct regroup *r)
{
    uint64_t sum = r->spilled;
    const struct items *const left[] = {r->paths, r->members, r->records};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        sum += left[i] != NULL ? items_spilled(left[i]) : 0;
    return sum;
}

static struct record_piece get_piece(struct reader *in, size_t inline_bytes)
{
    struct record_piece p = {.is_inline = get_number(in) != 0};
    p.offset = get_number(in);
    p.length = get_number(in);
    if (p.is_inline && (p.offset > inline_bytes || p.length > inline_bytes - p.offset))
        in->bad = true;
    return p;
}

int regroup_next(struct regroup *r, struct group_record *out, struct error *err)
{
    struct item item;
    int rc = items_next(r->records, &item, err);
    if (rc <= 0)
        return rc;
    struct reader in = reader_of(&item);
    size_t inline_bytes = 0;
    *out = (struct group_record){0};
    out->name = get_text(&in, &out->name_len);
    out->inlines = get_text(&in, &inline_bytes);
    buf_clear(&r->pieces);
    for (uint64_t left = get_number(&in); left > 0 && !in.bad; left--) {
        struct record_piece p = get_piece(&in, inline_bytes);
        out->size += p.length;
        buf_append(&r->pieces, &p, sizeof p);
    }
    out->pieces = (const void *)r->pieces.data;
    out->piece_count = r->pieces.len / sizeof *out->pieces;
    rc = reader_end(&in, err);
    return rc != 0 ? rc : 1;
}
