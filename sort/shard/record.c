/* Two hash tables with open addressing, one over paths and one over keys, whose slots are numbers
 * of entries in growing arrays, and hashes, so that no other entry than the right one is looked at;
 * texts stand in an arena, a record's name being the beginning of its first member's path.  The
 * hash is seeded anew for each table, so that nobody can prepare a shard of colliding names. */
#include "sort/shard/record.h"

#include <assert.h>
#include <xxhash.h>

#include "common/arena.h"
#include "common/mem.h"
#include "common/rng.h"
#include "sort/base/last_bytes.h"

#define NOBODY UINT32_MAX
#define SLOTS_FIRST 64
#define INLINE_FLAG (UINT64_C(1) << 63)

struct piece {
    uint64_t offset;
    uint64_t length; /* with INLINE_FLAG: of the inline bytes */
};

struct member {
    const char *path;
    const char *link; /* of hard links */
    uint32_t path_len;
    uint32_t link_len;
    uint32_t record;
    uint32_t next; /* of the record */
    uint32_t first_piece;
    uint8_t piece_count;
    bool dropped;
};

struct record {
    const char *name;
    uint32_t name_len;
    uint32_t first, last; /* members */
};

struct slot {
    uint32_t entry; /* its number, or NOBODY */
    uint32_t hash;
};

struct slots {
    struct slot *slot;
    size_t mask;
    size_t used;
};

struct record_table {
    char *shard;
    enum sort_key_rule rule;
    enum sort_policy duplicates;
    size_t memory_max;
    uint64_t seed;
    struct arena *texts;
    struct member *members;
    size_t member_count, member_cap;
    struct record *records;
    size_t record_count, record_cap;
    struct piece *pieces;
    size_t piece_count, piece_cap;
    struct buf inlines;
    struct last_bytes last_inline;
    bool any_links;
    struct slots by_path, by_name;
};

size_t record_key_len(const char *path, size_t len, enum sort_key_rule rule)
{
    const char *slash = memrchr(path, '/', len);
    const char *base = slash == NULL ? path : slash + 1;
    size_t base_len = len - (size_t)(base - path);
    const char *dot =
        rule == SORT_KEY_LAST_DOT ? memrchr(base, '.', base_len) : memchr(base, '.', base_len);
    return dot == NULL ? len : (size_t)(dot - path);
}

static void slots_init(struct slots *s, size_t size)
{
    s->slot = xmalloc(size * sizeof *s->slot);
    memset(s->slot, 0xff, size * sizeof *s->slot);
    s->mask = size - 1;
    s->used = 0;
}

struct record_table *record_table_new(const char *shard, enum sort_key_rule rule,
                                      enum sort_policy duplicates, size_t memory_max)
{
    struct record_table *t = xcalloc(1, sizeof *t);
    t->shard = xstrdup(shard);
    t->rule = rule;
    t->duplicates = duplicates;
    t->memory_max = memory_max;
    random_bytes(&t->seed, sizeof t->seed);
    t->texts = arena_new(4096);
    slots_init(&t->by_path, SLOTS_FIRST);
    slots_init(&t->by_name, SLOTS_FIRST);
    return t;
}

void record_table_free(struct record_table *t)
{
    if (t == NULL)
        return;
    arena_free(t->texts);
    buf_done(&t->inlines);
    free(t->by_path.slot);
    free(t->by_name.slot);
    free(t->members);
    free(t->records);
    free(t->pieces);
    free(t->shard);
    free(t);
}

static size_t table_memory(const struct record_table *t)
{
    return arena_used(t->texts) + t->inlines.cap + t->member_cap * sizeof *t->members +
           t->record_cap * sizeof *t->records + t->piece_cap * sizeof *t->pieces +
           (t->by_path.mask + t->by_name.mask + 2) * sizeof *t->by_path.slot;
}

static void *grow(void *array, size_t count, size_t *cap, size_t item)
{
    if (count < *cap)
        return array;
    *cap = *cap == 0 ? 16 : *cap * 2;
    return xrealloc(array, *cap * item);
}

static uint32_t text_hash(const struct record_table *t, const char *text, size_t len)
{
    return (uint32_t)XXH3_64bits_withSeed(text, len, t->seed);
}

static bool is_path(const struct record_table *t, uint32_t member, const char *path, size_t len)
{
    const struct member *m = &t->members[member];
    return m->path_len == len && memcmp(m->path, path, len) == 0;
}

static bool is_name(const struct record_table *t, uint32_t record, const char *name, size_t len)
{
    const struct record *r = &t->records[record];
    return r->name_len == len && memcmp(r->name, name, len) == 0;
}

/* Where the text's entry is, or the free slot where it belongs, which has its hash already. */
static struct slot *
slot_of(const struct record_table *t, const struct slots *s, const char *text, size_t len,
        bool (*is)(const struct record_table *t, uint32_t entry, const char *text, size_t len))
{
    uint32_t hash = text_hash(t, text, len);
    for (size_t i = hash & s->mask;; i = (i + 1) & s->mask) {
        struct slot *slot = &s->slot[i];
        if (slot->entry == NOBODY)
            slot->hash = hash;
        else if (slot->hash != hash || !is(t, slot->entry, text, len))
            continue;
        return slot;
    }
}

static struct slot *path_slot(const struct record_table *t, const char *path, size_t len)
{
    return slot_of(t, &t->by_path, path, len, is_path);
}

/* Doubles a table that is more than half full, putting every entry where it belongs now. */
static void slots_grow(struct slots *s)
{
    if (2 * s->used <= s->mask)
        return;
    struct slots old = *s;
    slots_init(s, 2 * (old.mask + 1));
    s->used = old.used;
    for (size_t i = 0; i <= old.mask; i++) {
        size_t to = old.slot[i].hash & s->mask;
        if (old.slot[i].entry == NOBODY)
            continue;
        while (s->slot[to].entry != NOBODY)
            to = (to + 1) & s->mask;
        s->slot[to] = old.slot[i];
    }
    free(old.slot);
}

static uint32_t table_record(struct record_table *t, const char *name, size_t len)
{
    slots_grow(&t->by_name);
    struct slot *slot = slot_of(t, &t->by_name, name, len, is_name);
    if (slot->entry != NOBODY)
        return slot->entry;
    t->records = grow(t->records, t->record_count, &t->record_cap, sizeof *t->records);
    uint32_t n = (uint32_t)t->record_count++;
    t->records[n] =
        (struct record){.name = name, .name_len = (uint32_t)len, .first = NOBODY, .last = NOBODY};
    slot->entry = n;
    t->by_name.used++;
    return n;
}

static struct piece table_inline(struct record_table *t, const struct tar_piece *p)
{
    size_t at = last_bytes_put(&t->last_inline, &t->inlines, p->inline_data, p->length);
    return (struct piece){.offset = at, .length = p->length | INLINE_FLAG};
}

static void table_add_pieces(struct record_table *t, struct member *to, const struct tar_member *m)
{
    to->first_piece = (uint32_t)t->piece_count;
    to->piece_count = (uint8_t)m->piece_count;
    for (unsigned i = 0; i < m->piece_count; i++) {
        const struct tar_piece *p = &m->pieces[i];
        t->pieces = grow(t->pieces, t->piece_count, &t->piece_cap, sizeof *t->pieces);
        t->pieces[t->piece_count++] =
            p->inline_data != NULL ? table_inline(t, p)
                                   : (struct piece){.offset = p->offset, .length = p->length};
    }
}

static uint32_t table_member(struct record_table *t, const struct tar_member *m)
{
    t->members = grow(t->members, t->member_count, &t->member_cap, sizeof *t->members);
    uint32_t n = (uint32_t)t->member_count++;
    struct member *to = &t->members[n];
    *to = (struct member){.path_len = (uint32_t)m->path_len, .next = NOBODY};
    char *path = arena_bytes(t->texts, m->path_len);
    memcpy(path, m->path, m->path_len);
    to->path = path;
    if (m->type == '1') {
        char *link = arena_bytes(t->texts, m->link_len + 1);
        memcpy(link, m->link, m->link_len);
        to->link = link;
        to->link_len = (uint32_t)m->link_len;
        t->any_links = true;
    }
    table_add_pieces(t, to, m);
    return n;
}

static void table_append(struct record_table *t, uint32_t n)
{
    struct member *m = &t->members[n];
    m->record = table_record(t, m->path, record_key_len(m->path, m->path_len, t->rule));
    struct record *r = &t->records[m->record];
    if (r->first == NOBODY)
        r->first = n;
    else
        t->members[r->last].next = n;
    r->last = n;
}

bool record_table_full(const struct record_table *t)
{
    return t->member_count >= NOBODY / 4 || table_memory(t) > t->memory_max;
}

int record_table_add(struct record_table *t, const struct tar_member *m, bool *replaced,
                     struct error *err)
{
    if (record_table_full(t))
        return error_set(err, E_NOMEM,
                         "shard '%s': the table of its records exceeds %zu bytes; max_mem_usage "
                         "is too small for it",
                         t->shard, t->memory_max);
    slots_grow(&t->by_path);
    struct slot *slot = path_slot(t, m->path, m->path_len);
    uint32_t earlier = slot->entry;
    *replaced = earlier != NOBODY;
    if (*replaced && t->duplicates == SORT_ABORT)
        return error_set(err, E_DUPLICATE_RECORD, "shard '%s', byte %llu: '%.*s' comes twice",
                         t->shard, (unsigned long long)m->offset,
                         (int)(m->path_len < 256 ? m->path_len : 256), m->path);
    uint32_t n = table_member(t, m);
    slot->entry = n;
    if (*replaced)
        t->members[earlier].dropped = true;
    else
        t->by_path.used++;
    table_append(t, n);
    return 0;
}

static bool link_holds(const struct record_table *t, uint32_t n)
{
    const struct member *m = &t->members[n];
    uint32_t target = path_slot(t, m->link, m->link_len)->entry;
    return target != NOBODY && target < n && t->members[target].record == m->record;
}

int record_link_error(const char *shard, const char *path, size_t path_len, const char *link,
                      size_t link_len, struct error *err)
{
    return error_set(
        err, E_SHARD_UNSUPPORTED,
        "shard '%s': hard link '%.*s' to '%.*s', which is not before it in the same record", shard,
        (int)(path_len < 128 ? path_len : 128), path, (int)(link_len < 128 ? link_len : 128), link);
}

int record_table_finish(struct record_table *t, struct error *err)
{
    for (uint32_t n = 0; t->any_links && n < t->member_count; n++) {
        const struct member *m = &t->members[n];
        if (m->link != NULL && !m->dropped && !link_holds(t, n))
            return record_link_error(t->shard, m->path, m->path_len, m->link, m->link_len, err);
    }
    return 0;
}

size_t record_table_members(const struct record_table *t)
{
    return t->member_count;
}

bool record_table_member(const struct record_table *t, size_t n, struct tar_member *out)
{
    assert(n < t->member_count);
    const struct member *m = &t->members[n];
    *out = (struct tar_member){
        .path = m->path,
        .path_len = m->path_len,
        .link = m->link,
        .link_len = m->link_len,
        .type = m->link != NULL ? '1' : '0',
        .piece_count = m->piece_count,
    };
    for (unsigned i = 0; i < m->piece_count; i++) {
        const struct piece *p = &t->pieces[m->first_piece + i];
        bool is_inline = (p->length & INLINE_FLAG) != 0;
        out->pieces[i] = (struct tar_piece){
            .inline_data = is_inline ? t->inlines.data + p->offset : NULL,
            .offset = is_inline ? 0 : p->offset,
            .length = p->length & ~INLINE_FLAG,
        };
    }
    return m->dropped;
}

size_t record_table_count(const struct record_table *t)
{
    return t->record_count;
}

const char *record_table_name(const struct record_table *t, size_t record, size_t *len)
{
    assert(record < t->record_count);
    *len = t->records[record].name_len;
    return t->records[record].name;
}

void record_pieces_append(struct buf *out, size_t from, const struct record_piece *next)
{
    if (out->len > from && !next->is_inline) {
        struct record_piece *last = (struct record_piece *)(out->data + out->len) - 1;
        if (!last->is_inline && last->offset + last->length == next->offset) {
            last->length += next->length;
            return;
        }
    }
    buf_append(out, next, sizeof *next);
}

static struct record_piece piece_of(const struct piece *p)
{
    return (struct record_piece){
        .is_inline = (p->length & INLINE_FLAG) != 0,
        .offset = p->offset,
        .length = p->length & ~INLINE_FLAG,
    };
}

void record_table_pieces(const struct record_table *t, size_t record, struct buf *out)
{
    assert(record < t->record_count);
    size_t from = out->len;
    for (uint32_t n = t->records[record].first; n != NOBODY; n = t->members[n].next) {
        const struct member *m = &t->members[n];
        for (unsigned i = 0; i < m->piece_count && !m->dropped; i++) {
            struct record_piece p = piece_of(&t->pieces[m->first_piece + i]);
            record_pieces_append(out, from, &p);
        }
    }
}

const struct buf *record_table_inline(const struct record_table *t)
{
    return &t->inlines;
}
