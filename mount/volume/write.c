/* Slices of a file: written, and found again. */
#include <endian.h>
#include <errno.h>
#include <sys/stat.h>

#include "mount/volume/counters.h"
#include "mount/volume/chunks.h"
#include "mount/volume/ids.h"
#include "mount/volume/quotas.h"
#include "mount/volume/steps.h"

int volume_new_slice(struct volume *v, uint64_t *slice)
{
    return ids_slice(v, slice);
}

uint64_t volume_next_slice(struct volume *v)
{
    return ids_next_slice(v);
}

int volume_settled(struct volume *v, uint64_t below)
{
    return ids_settled(v, below);
}

/* ---- write ---- */

struct write {
    uint64_t ino;
    const struct volume_piece *pieces;
    size_t count;
    unsigned flags;
    int64_t base; /* pieces are relative to it */
};

/* The chunks that the transaction touches, each once. */
struct touched {
    struct chunk *chunks;
    bool *messy; /* as they were */
    size_t count;
};

static int chunk_of(struct txn *t, struct touched *touched, uint64_t ino, uint64_t number,
                    struct chunk **out)
{
    for (size_t i = 0; i < touched->count; i++) {
        if (touched->chunks[i].key.sub == number) {
            *out = &touched->chunks[i];
            return 0;
        }
    }
    struct chunk *c = *out = &touched->chunks[touched->count++];
    c->key = meta_key_number(META_CHUNK, ino, number);
    int rc = txn_get(t, &c->key, &c->value);
    if (rc == 0)
        rc = chunks_parse(t, c);
    if (rc == 0)
        touched->messy[touched->count - 1] = slices_is_messy(&c->list, VOLUME_LIST_LONG, t->arena);
    return rc;
}

static int add_piece(struct txn *t, const struct write *w, const struct volume_piece *p,
                     struct touched *touched, struct releases *r)
{
    const uint64_t chunk_bytes = t->v->format.chunk_bytes;
    const uint64_t at = (uint64_t)(w->base + p->at);
    for (uint32_t done = 0; done < p->length;) {
        struct chunk *c;
        uint64_t from = (at + done) % chunk_bytes;
        uint64_t room = chunk_bytes - from;
        struct slice_entry e = {
            .at = (uint32_t)from,
            .length = p->length - done < room ? p->length - done : (uint32_t)room,
            .offset = done,
            .size = p->size,
            .slice = p->slice,
            .sums = p->sums,
            .sums_count = p->sums_count,
        };
        int rc = chunk_of(t, touched, w->ino, (at + done) / chunk_bytes, &c);
        if (rc != 0)
            return rc;
        releases_make(r, e.slice, e.size);
        chunks_add(t, c, &e, r);
        done += e.length;
    }
    return 0;
}

static size_t chunks_at_most(const struct txn *t, const struct write *w)
{
    size_t most = 0;
    for (size_t i = 0; i < w->count; i++)
        most += w->pieces[i].length / t->v->format.chunk_bytes + 2;
    return most;
}

static int check_pieces(const struct write *w)
{
    for (size_t i = 0; i < w->count; i++) {
        const struct volume_piece *p = &w->pieces[i];
        int rc = chunks_check_end(p->at, p->length);
        if (rc == 0)
            rc = chunks_check_end(w->base, (uint64_t)p->at + p->length);
        if (rc == 0 && (p->length == 0 || (p->slice != 0 && p->length > p->size)))
            rc = -EINVAL;
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* A chmod that comes between makes it read again. */
static void drop_setid(struct txn *t, const struct meta_item *read, const struct attr *a)
{
    const uint32_t mode = htole32(attr_without_setid(a->mode));
    if (attr_without_setid(a->mode) == a->mode)
        return;
    txn_expect(t, &read->key, &read->value);
    txn_set(t, &read->key, ATTR_MODE, &mode, sizeof mode);
}

static int64_t end_of(const struct write *w)
{
    int64_t end = 0;
    for (size_t i = 0; i < w->count; i++) {
        const int64_t of_piece = w->base + w->pieces[i].at + w->pieces[i].length;
        end = of_piece > end ? of_piece : end;
    }
    return end;
}

/* `read` is what `a` was decoded from. */
static void change_attr(struct txn *t, const struct write *w, const struct meta_item *read,
                        const struct attr *a)
{
    const struct meta_key key = read->key;
    int64_t written_ns = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct volume_piece *p = &w->pieces[i];
        written_ns = p->written_ns > written_ns ? p->written_ns : written_ns;
    }
    if (written_ns == 0)
        written_ns = t->now_ns;
    if ((w->flags & VOLUME_DROP_SETID) != 0)
        drop_setid(t, read, a);
    if ((w->flags & VOLUME_APPEND) != 0)
        txn_expect_equal(t, &key, ATTR_LENGTH, w->base);
    txn_raise(t, &key, ATTR_LENGTH, end_of(w));
    txn_add(t, &key, ATTR_CHANGES, 1);
    txn_set_number(t, &key, ATTR_MTIME, written_ns);
    txn_raise(t, &key, ATTR_CTIME, written_ns);
}

static void store_chunk(struct txn *t, const struct chunk *c, bool was_messy)
{
    chunks_store(t, c);
    if (!was_messy && slices_is_messy(&c->list, VOLUME_LIST_LONG, t->arena))
        compact_queue(t, c->key.id, c->key.sub, t->v->format.session_ms);
}

static int change_chunks(struct txn *t, const struct write *w, const struct meta_value *use)
{
    struct touched touched = {
        .chunks = arena_alloc(t->arena, (chunks_at_most(t, w) + 1) * sizeof *touched.chunks),
        .messy = arena_alloc(t->arena, chunks_at_most(t, w) + 1),
    };
    struct releases r = {0};
    int rc = 0;
    for (size_t i = 0; i < w->count && rc == 0; i++)
        rc = add_piece(t, w, &w->pieces[i], &touched, &r);
    if (rc == 0)
        rc = steps_check_use(use, 0, releases_new_bytes(&r));
    for (size_t i = 0; i < touched.count && rc == 0; i++)
        store_chunk(t, &touched.chunks[i], touched.messy[i]);
    if (rc == 0)
        rc = releases_apply(&r, t);
    releases_done(&r);
    return rc;
}

static int decide_write(struct txn *t, void *op)
{
    struct write *w = op;
    struct attr a;
    struct quota quota;
    struct meta_item items[3] = {
        {.ask = META_GET, .key = meta_key_point(META_ATTR, w->ino)},
        {.ask = META_GET, .key = counters_use_key()},
    };
    int rc = quotas_read(t, items, 2, 0, &quota);
    if (rc != 0)
        return rc;
    if (!items[0].value.found)
        return -ENOENT;
    if (!attr_decode(&items[0].value, &a))
        return -EIO;
    if (!S_ISREG(a.mode))
        return attr_is_directory(&a) ? -EISDIR : -EINVAL;
    w->base = (w->flags & VOLUME_APPEND) != 0 ? a.length : 0;
    rc = check_pieces(w);
    if (rc == 0)
        rc = change_chunks(t, w, &items[1].value);
    if (rc == 0)
        rc = quotas_resize(t, &items[0].key, &a, &quota,
                           end_of(w) > a.length ? end_of(w) : a.length);
    if (rc == 0)
        change_attr(t, w, &items[0], &a);
    return rc;
}

int volume_write(struct volume *v, uint64_t ino, const struct volume_piece *pieces, size_t count,
                 unsigned flags, int64_t *end)
{
    struct write w = {.ino = ino, .pieces = pieces, .count = count, .flags = flags};
    int rc = txn_run(v, decide_write, &w);
    if (end != NULL)
        *end = w.base;
    return rc;
}

/* ---- extents ---- */

struct look {
    uint64_t ino;
    int64_t at;
    uint64_t length;
    struct arena *arena;
    struct volume_extent *out;
    size_t count;
};

/* What the chunk `number` shows of the range. */
static int look_at_chunk(struct txn *t, struct look *l, uint64_t number,
                         const struct meta_value *value, uint64_t to)
{
    const uint64_t chunk_bytes = t->v->format.chunk_bytes;
    const uint64_t begin = number * chunk_bytes;
    uint64_t from = (uint64_t)l->at > begin ? (uint64_t)l->at - begin : 0;
    uint64_t end = to - begin < chunk_bytes ? to - begin : chunk_bytes;
    struct slice_list list;
    struct extent *extents;
    struct error err = ERROR_INIT;
    if (slices_decode(value->data, value->size, chunk_bytes, l->arena, &list, &err) != 0)
        return txn_engine_error("slices", &err);
    size_t count =
        slices_resolve(&list, (uint32_t)from, (uint32_t)(end - from), l->arena, &extents);
    struct volume_extent *all = arena_alloc(l->arena, (l->count + count + 1) * sizeof *all);
    for (size_t i = 0; i < l->count; i++)
        all[i] = l->out[i];
    for (size_t i = 0; i < count; i++)
        all[l->count + i] = (struct volume_extent){
            .at = (int64_t)(begin + extents[i].at),
            .length = extents[i].length,
            .entry = extents[i].entry,
            .offset = extents[i].offset,
        };
    l->out = all;
    l->count += count;
    return 0;
}

/* Attribute and chunks are read at one moment. */
static int decide_extents(struct txn *t, void *op)
{
    struct look *l = op;
    struct attr a;
    const uint64_t chunk_bytes = t->v->format.chunk_bytes;
    const uint64_t first = (uint64_t)l->at / chunk_bytes;
    const size_t chunks = (size_t)(((uint64_t)l->at + l->length) / chunk_bytes - first) + 1;
    struct meta_item *items = arena_alloc(t->arena, (chunks + 1) * sizeof *items);
    items[0].key = meta_key_point(META_ATTR, l->ino);
    for (size_t i = 0; i < chunks; i++)
        items[1 + i].key = meta_key_number(META_CHUNK, l->ino, first + i);
    int rc = txn_read(t, items, chunks + 1);
    if (rc != 0)
        return rc;
    if (!items[0].value.found)
        return -ENOENT;
    if (!attr_decode(&items[0].value, &a))
        return -EIO;
    l->count = 0;
    uint64_t to = (uint64_t)l->at + l->length;
    to = to < (uint64_t)a.length ? to : (uint64_t)a.length;
    for (size_t i = 0; i < chunks && rc == 0 && (first + i) * chunk_bytes < to; i++) {
        if ((uint64_t)l->at < to)
            rc = look_at_chunk(t, l, first + i, &items[1 + i].value, to);
    }
    return rc;
}

int volume_extents(struct volume *v, uint64_t ino, int64_t at, uint64_t length, struct arena *arena,
                   struct volume_extent **out, size_t *count)
{
    struct look l = {.ino = ino, .at = at, .length = length, .arena = arena};
    int rc = chunks_check_end(at, length);
    if (rc == 0)
        rc = txn_run(v, decide_extents, &l);
    *out = l.out;
    *count = l.count;
    return rc;
}
