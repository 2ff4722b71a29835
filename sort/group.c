/* A payload is numbers (varints) and texts:
 *
 *     of a member    dropped? (0, 1); with 0: the path behind the key, is it a hard link? (0, 1),
 *                    the link, offset, pieces
 *     of a record    the name, pieces
 *     text           length, bytes
 *     pieces         count, and for each: inline? (0, 1), offset or, if inline, the bytes as a
 * text; length of what is not inline
 *
 * Members that the table had dropped before it was full come along, for the position that they may
 * have given to their record. */
#include "sort/group.h"

#include <assert.h>

#include "common/mem.h"
#include "sort/items.h"
#include "sort/order.h"
#include "sort/varint.h"

#define CHECK_EVERY 4096 /* members */

struct spill {
    struct items *members;
    struct items *records;
    uint64_t rank;            /* of the next member */
    struct record_table *one; /* the record whose members are being put together */
    struct buf key;           /* its name … */
    uint64_t first;           /* … and its first member's rank */
    bool any;                 /* there is one */
    struct buf payload;       /* that is being written */
    struct buf path;          /* of the member that is being read */
    struct buf inlines;       /* of the record that is out */
};

struct group {
    struct group_config config;
    struct record_table *table; /* NULL once spilled */
    struct spill *spill;
    size_t cursor;
    struct buf pieces; /* of the record that is out, or goes out */
};

struct group *group_new(const struct group_config *config)
{
    struct group *g = xcalloc(1, sizeof *g);
    g->config = *config;
    if (g->config.memory < GROUP_MEMORY_MIN)
        g->config.memory = GROUP_MEMORY_MIN;
    g->table = record_table_new(config->shard, config->rule, config->duplicates,
                                (size_t)g->config.memory / 2);
    return g;
}

static void spill_free(struct spill *s)
{
    if (s == NULL)
        return;
    items_free(s->members);
    items_free(s->records);
    record_table_free(s->one);
    buf_done(&s->key);
    buf_done(&s->payload);
    buf_done(&s->path);
    buf_done(&s->inlines);
    free(s);
}

void group_free(struct group *g)
{
    if (g == NULL)
        return;
    record_table_free(g->table);
    spill_free(g->spill);
    buf_done(&g->pieces);
    free(g);
}

/* --- writing payloads ---------------------------------------------------------------------------
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

static void put_member(struct buf *out, const struct tar_member *m, size_t key_len)
{
    put_number(out, 0);
    put_text(out, m->path + key_len, m->path_len - key_len);
    bool is_link = m->type == '1';
    put_number(out, is_link);
    put_text(out, is_link ? m->link : "", is_link ? m->link_len : 0);
    put_number(out, m->offset);
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

static void put_record(struct buf *out, const struct record_table *t, const struct buf *found)
{
    size_t len = 0;
    const char *name = record_table_name(t, 0, &len);
    const struct record_piece *pieces = (const void *)found->data;
    size_t count = found->len / sizeof *pieces;
    put_text(out, name, len);
    put_number(out, count);
    for (size_t i = 0; i < count; i++) {
        put_number(out, pieces[i].is_inline);
        if (pieces[i].is_inline) {
            put_text(out, record_table_inline(t)->data + pieces[i].offset, pieces[i].length);
        } else {
            put_number(out, pieces[i].offset);
            put_number(out, pieces[i].length);
        }
    }
}

/* --- reading them: a disk may have changed them -------------------------------------------------
 */

struct reader {
    const unsigned char *at;
    size_t left;
    bool bad;
};

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

static int reader_end(const struct reader *r, struct error *err)
{
    if (!r->bad && r->left == 0)
        return 0;
    return error_set(err, E_CORRUPT, "a work file does not hold what was written into it");
}

static void get_member_pieces(struct reader *r, struct tar_member *m)
{
    uint64_t count = get_number(r);
    r->bad = r->bad || count > TAR_PIECES_MAX;
    m->piece_count = r->bad ? 0 : (unsigned)count;
    for (unsigned i = 0; i < m->piece_count; i++) {
        struct tar_piece *p = &m->pieces[i];
        size_t len = 0;
        *p = (struct tar_piece){0};
        if (get_number(r) != 0) {
            p->inline_data = get_text(r, &len);
            p->length = len;
        } else {
            p->offset = get_number(r);
            p->length = get_number(r);
        }
    }
}

/* *dropped: there is nothing but that. */
static int get_member(struct spill *s, const struct item *item, struct tar_member *m, bool *dropped,
                      struct error *err)
{
    struct reader r = {.at = item->payload, .left = item->len};
    *dropped = get_number(&r) != 0;
    if (*dropped)
        return reader_end(&r, err);
    size_t len = 0;
    const char *rest = get_text(&r, &len);
    buf_clear(&s->path);
    buf_append(&s->path, item->key, item->key_len);
    buf_append(&s->path, rest, len);
    *m = (struct tar_member){.path = s->path.data, .path_len = s->path.len};
    m->type = get_number(&r) != 0 ? '1' : '0';
    m->link = get_text(&r, &m->link_len);
    m->offset = get_number(&r);
    get_member_pieces(&r, m);
    return reader_end(&r, err);
}

static void get_record_piece(struct reader *r, struct spill *s, struct record_piece *p)
{
    *p = (struct record_piece){.is_inline = get_number(r) != 0};
    if (p->is_inline) {
        size_t len = 0;
        const char *text = get_text(r, &len);
        p->offset = s->inlines.len;
        p->length = len;
        buf_append(&s->inlines, text, len);
    } else {
        p->offset = get_number(r);
        p->length = get_number(r);
    }
}

/* --- spilling -----------------------------------------------------------------------------------
 */

static int spill_member(struct group *g, const struct tar_member *m, bool dropped,
                        struct error *err)
{
    struct spill *s = g->spill;
    size_t key_len = record_key_len(m->path, m->path_len, g->config.rule);
    buf_clear(&s->payload);
    if (dropped)
        put_number(&s->payload, 1);
    else
        put_member(&s->payload, m, key_len);
    return items_add(s->members, m->path, key_len, s->rank++, &s->payload, err);
}

/* The table is full: its members go first. */
static int spill_begin(struct group *g, struct error *err)
{
    struct spill *s = g->spill = xcalloc(1, sizeof *s);
    int rc = items_new(g->config.env, g->config.memory / 2, &s->members, err);
    size_t count = record_table_members(g->table);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct tar_member m;
        bool dropped = record_table_member(g->table, i, &m);
        rc = spill_member(g, &m, dropped, err);
    }
    record_table_free(steal(g->table));
    return rc;
}

int group_add(struct group *g, const struct tar_member *m, struct error *err)
{
    int rc = 0;
    if (g->table != NULL && record_table_full(g->table))
        rc = spill_begin(g, err);
    if (rc == 0 && g->table == NULL)
        return spill_member(g, m, false, err);
    bool replaced = false;
    if (rc == 0)
        rc = record_table_add(g->table, m, &replaced, err);
    if (rc == 0 && replaced)
        g->config.replaced(g->config.ctx, m->path, m->path_len);
    return rc;
}

/* --- records, by name ---------------------------------------------------------------------------
 */

static int record_close(struct group *g, struct error *err)
{
    struct spill *s = g->spill;
    int rc = record_table_finish(s->one, err);
    if (rc != 0 || !s->any)
        return rc;
    assert(record_table_count(s->one) == 1);
    buf_clear(&g->pieces);
    buf_clear(&s->payload);
    record_table_pieces(s->one, 0, &g->pieces);
    put_record(&s->payload, s->one, &g->pieces);
    s->any = false;
    return items_add(s->records, "", 0, s->first, &s->payload, err);
}

static bool same_key(const struct spill *s, const struct item *item)
{
    return s->any && s->key.len == item->key_len &&
           memcmp(s->key.data, item->key, item->key_len) == 0;
}

static void record_open(struct spill *s, const struct item *item)
{
    record_table_reset(s->one);
    buf_clear(&s->key);
    buf_append(&s->key, item->key, item->key_len);
    s->first = item->rank;
    s->any = true;
}

static int record_member(struct group *g, const struct item *item, struct error *err)
{
    struct spill *s = g->spill;
    struct tar_member m;
    bool dropped = false;
    bool replaced = false;
    int rc = get_member(s, item, &m, &dropped, err);
    if (rc != 0 || dropped)
        return rc;
    rc = record_table_add(s->one, &m, &replaced, err);
    if (rc == E_NOMEM)
        rc = error_set(err, rc,
                       "shard '%s': the members of record '%.*s' need more than max_mem_usage lets "
                       "them have; is it the right key_rule?",
                       g->config.shard, (int)(s->key.len < 256 ? s->key.len : 256), s->key.data);
    if (rc == 0 && replaced)
        g->config.replaced(g->config.ctx, m.path, m.path_len);
    return rc;
}

static int spill_finish(struct group *g, struct error *err)
{
    struct spill *s = g->spill;
    s->one = record_table_new(g->config.shard, g->config.rule, g->config.duplicates,
                              (size_t)g->config.record_memory);
    int rc = items_new(g->config.env, g->config.memory / 2, &s->records, err);
    if (rc == 0)
        rc = items_open(s->members, err);
    struct item item;
    for (uint64_t n = 0; rc == 0 && (rc = items_next(s->members, &item, err)) > 0; n++) {
        rc = n % CHECK_EVERY == 0 ? g->config.check(g->config.ctx, err) : 0;
        if (rc == 0 && !same_key(s, &item)) {
            rc = record_close(g, err);
            record_open(s, &item);
        }
        if (rc == 0)
            rc = record_member(g, &item, err);
    }
    if (rc == 0)
        rc = record_close(g, err);
    if (rc == 0 && items_count(s->records) > SORT_POSITION_MAX)
        rc = error_set(err, E_SHARD_UNSUPPORTED, "shard '%s' has more than %u records",
                       g->config.shard, SORT_POSITION_MAX);
    return rc != 0 ? rc : items_open(s->records, err);
}

int group_finish(struct group *g, struct error *err)
{
    return g->table != NULL ? record_table_finish(g->table, err) : spill_finish(g, err);
}

/* --- records, by position -----------------------------------------------------------------------
 */

uint64_t group_count(const struct group *g)
{
    return g->table != NULL ? record_table_count(g->table) : items_count(g->spill->records);
}

uint64_t group_spilled(const struct group *g)
{
    const struct spill *s = g->spill;
    if (s == NULL)
        return 0;
    return items_spilled(s->members) + (s->records != NULL ? items_spilled(s->records) : 0);
}

static void record_out(const struct group *g, const char *inlines, struct group_record *out)
{
    out->pieces = (const void *)g->pieces.data;
    out->piece_count = g->pieces.len / sizeof *out->pieces;
    out->inlines = inlines;
    out->size = 0;
    for (size_t i = 0; i < out->piece_count; i++)
        out->size += out->pieces[i].length;
}

static int table_next(struct group *g, struct group_record *out)
{
    if (g->cursor == record_table_count(g->table))
        return 0;
    buf_clear(&g->pieces);
    out->name = record_table_name(g->table, g->cursor, &out->name_len);
    record_table_pieces(g->table, g->cursor, &g->pieces);
    g->cursor++;
    record_out(g, record_table_inline(g->table)->data, out);
    return 1;
}

static int spill_next(struct group *g, struct group_record *out, struct error *err)
{
    struct spill *s = g->spill;
    struct item item;
    int rc = items_next(s->records, &item, err);
    if (rc <= 0)
        return rc;
    struct reader r = {.at = item.payload, .left = item.len};
    out->name = get_text(&r, &out->name_len);
    buf_clear(&g->pieces);
    buf_clear(&s->inlines);
    for (uint64_t left = get_number(&r); left > 0 && !r.bad; left--) {
        struct record_piece p;
        get_record_piece(&r, s, &p);
        buf_append(&g->pieces, &p, sizeof p);
    }
    record_out(g, s->inlines.data, out);
    rc = reader_end(&r, err);
    return rc != 0 ? rc : 1;
}

int group_next(struct group *g, struct group_record *out, struct error *err)
{
    return g->table != NULL ? table_next(g, out) : spill_next(g, out, err);
}
