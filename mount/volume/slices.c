#include "mount/volume/slices.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

/* ---- bytes ---- */

enum { HEAD = 28 }; /* at, length, offset, size, slice, count of sums; the sums follow */

static uint32_t get32(const uint8_t *p)
{
    uint32_t little;
    memcpy(&little, p, sizeof little);
    return le32toh(little);
}

static uint64_t get64(const uint8_t *p)
{
    uint64_t little;
    memcpy(&little, p, sizeof little);
    return le64toh(little);
}

static void put32(struct buf *out, uint32_t number)
{
    uint32_t little = htole32(number);
    buf_append(out, &little, sizeof little);
}

static void put64(struct buf *out, uint64_t number)
{
    uint64_t little = htole64(number);
    buf_append(out, &little, sizeof little);
}

void slices_encode(const struct slice_list *list, struct buf *out)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct slice_entry *e = &list->entries[i];
        put32(out, e->at);
        put32(out, e->length);
        put32(out, e->offset);
        put32(out, e->size);
        put64(out, e->slice);
        put32(out, e->sums_count);
        for (uint32_t s = 0; s < e->sums_count; s++)
            put64(out, e->sums[s]);
    }
}

static bool is_sound(const struct slice_entry *e, uint64_t chunk_bytes)
{
    bool in_chunk = e->length > 0 && (uint64_t)e->at + e->length <= chunk_bytes;
    bool in_slice = e->slice == 0 || (uint64_t)e->offset + e->length <= e->size;
    return in_chunk && in_slice;
}

static size_t count_entries(const uint8_t *data, size_t size)
{
    size_t count = 0;
    for (size_t at = 0; size - at >= HEAD; count++) {
        uint64_t sums = get32(data + at + 24);
        if (sums > (size - at - HEAD) / 8)
            return SIZE_MAX;
        at += HEAD + sums * 8;
        if (at == size)
            return count + 1;
    }
    return size == 0 ? 0 : SIZE_MAX;
}

int slices_decode(const uint8_t *data, size_t size, uint64_t chunk_bytes, struct arena *arena,
                  struct slice_list *out, struct error *err)
{
    size_t count = count_entries(data, size);
    if (count == SIZE_MAX)
        return error_set(err, E_CORRUPT, "the slice entries of a chunk end in the middle of one");
    /* Room for one more, which a write adds. */
    *out = (struct slice_list){arena_alloc(arena, (count + 1) * sizeof *out->entries), count};
    for (size_t i = 0; i < count; i++) {
        struct slice_entry *e = &out->entries[i];
        *e = (struct slice_entry){
            .at = get32(data),
            .length = get32(data + 4),
            .offset = get32(data + 8),
            .size = get32(data + 12),
            .slice = get64(data + 16),
            .sums_count = get32(data + 24),
        };
        if (!is_sound(e, chunk_bytes))
            return error_set(err, E_CORRUPT, "slice entry %zu of a chunk is outside of it", i);
        uint64_t *sums = arena_alloc(arena, e->sums_count * sizeof *sums + 1);
        for (uint32_t s = 0; s < e->sums_count; s++)
            sums[s] = get64(data + HEAD + 8 * s);
        e->sums = sums;
        data += HEAD + 8 * (size_t)e->sums_count;
    }
    return 0;
}

/* ---- extents ---- */

/* Extents in order, without overlaps; what none covers is zeros. */
struct shown {
    struct extent *items;
    size_t count;
};

static uint32_t end_of(const struct extent *x)
{
    return x->at + x->length;
}

/* The part of x within [from, to). */
static struct extent part(const struct extent *x, uint32_t from, uint32_t to)
{
    struct extent p = *x;
    uint32_t begin = x->at > from ? x->at : from;
    uint32_t end = end_of(x) < to ? end_of(x) : to;
    p.at = begin;
    p.length = end > begin ? end - begin : 0;
    p.offset = x->offset + (begin - x->at);
    return p;
}

/* Puts an entry over what is there.  Each entry adds two extents at most: itself, and the rest of
 * one that it cuts in two. */
static void lay(struct shown *s, const struct slice_entry *e)
{
    const uint32_t from = e->at, to = e->at + e->length;
    size_t first = 0;
    while (first < s->count && end_of(&s->items[first]) <= from)
        first++;
    size_t last = first;
    while (last < s->count && s->items[last].at < to)
        last++;
    struct extent in[3];
    size_t count = 0;
    if (first < last && s->items[first].at < from)
        in[count++] = part(&s->items[first], 0, from);
    in[count++] = (struct extent){from, e->length, e, e->offset};
    if (first < last && end_of(&s->items[last - 1]) > to)
        in[count++] = part(&s->items[last - 1], to, UINT32_MAX);
    memmove(s->items + first + count, s->items + last, (s->count - last) * sizeof *s->items);
    memcpy(s->items + first, in, count * sizeof *in);
    s->count = s->count - (last - first) + count;
}

static struct shown show(const struct slice_list *list, struct arena *arena)
{
    /* One more than can be at any time, since lay() moves before it counts. */
    struct shown s = {arena_alloc(arena, (2 * list->count + 3) * sizeof *s.items), 0};
    for (size_t i = 0; i < list->count; i++)
        lay(&s, &list->entries[i]);
    return s;
}

static void add_extent(struct extent *out, size_t *count, struct extent x)
{
    if (x.length == 0)
        return;
    if (x.entry != NULL && x.entry->slice == 0)
        x.entry = NULL;
    if (x.entry == NULL)
        x.offset = 0;
    struct extent *before = *count > 0 ? &out[*count - 1] : NULL;
    bool goes_on = before != NULL && before->entry == x.entry &&
                   (x.entry == NULL || before->offset + before->length == x.offset);
    if (goes_on)
        before->length += x.length;
    else
        out[(*count)++] = x;
}

size_t slices_resolve(const struct slice_list *list, uint32_t at, uint32_t length,
                      struct arena *arena, struct extent **out)
{
    struct shown s = show(list, arena);
    const uint32_t to = at + length;
    size_t count = 0;
    assert(to >= at);
    *out = arena_alloc(arena, (2 * s.count + 2) * sizeof **out);
    for (size_t i = 0; i < s.count; i++) {
        struct extent p = part(&s.items[i], at, to);
        if (p.length == 0)
            continue;
        add_extent(*out, &count, (struct extent){.at = at, .length = p.at - at});
        add_extent(*out, &count, p);
        at = end_of(&p);
    }
    add_extent(*out, &count, (struct extent){.at = at, .length = to - at});
    return count;
}

/* ---- prune ---- */

/* Zeros are needed if an older entry that is kept is under them. */
static bool hides_any(const struct slice_list *kept, const struct slice_entry *zeros)
{
    for (size_t i = 0; i < kept->count; i++) {
        const struct slice_entry *e = &kept->entries[i];
        if (e->at < zeros->at + zeros->length && zeros->at < e->at + e->length)
            return true;
    }
    return false;
}

struct slice_list slices_prune(struct slice_list *list, uint64_t chunk_bytes, struct arena *arena)
{
    struct shown s = show(list, arena);
    struct slice_list gone = {arena_alloc(arena, (list->count + 1) * sizeof *gone.entries), 0};
    struct slice_list kept = {arena_alloc(arena, (list->count + 2) * sizeof *kept.entries), 0};
    bool *shows = arena_alloc(arena, list->count + 1);
    for (size_t i = 0; i < s.count; i++) {
        assert(end_of(&s.items[i]) <= chunk_bytes);
        shows[s.items[i].entry - list->entries] = true;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct slice_entry *e = &list->entries[i];
        bool keep = shows[i] && (e->slice != 0 || hides_any(&kept, e));
        struct slice_list *to = keep ? &kept : &gone;
        to->entries[to->count++] = *e;
    }
    *list = kept;
    return gone;
}

/* ---- what to store anew ---- */

/* Bytes that each entry shows. */
static uint64_t *count_shown(const struct slice_list *list, const struct shown *s,
                             struct arena *arena)
{
    uint64_t *shown = arena_alloc(arena, (list->count + 1) * sizeof *shown);
    for (size_t i = 0; i < s->count; i++)
        shown[s->items[i].entry - list->entries] += s->items[i].length;
    return shown;
}

static bool is_wasteful(const struct slice_entry *e, uint64_t shown)
{
    return e->slice != 0 && 2 * shown < e->size;
}

bool slices_is_messy(const struct slice_list *list, unsigned most, struct arena *arena)
{
    const struct shown s = show(list, arena);
    const uint64_t *shown = count_shown(list, &s, arena);
    uint64_t live = 0, stored = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->entries[i].slice == 0)
            continue;
        live += shown[i];
        stored += list->entries[i].size;
    }
    return list->count > most || 2 * live < stored;
}

/* What a block shows of slices, seen extent by extent. */
struct block_use {
    uint32_t from, to;
    unsigned extents;
    bool wasteful;
};

static void add_use(struct block_use *b, const struct extent *x, bool wasteful)
{
    b->from = b->extents == 0 ? x->at : b->from;
    b->to = end_of(x);
    b->extents++;
    b->wasteful |= wasteful;
}

size_t slices_plan(const struct slice_list *list, uint64_t block_bytes, struct arena *arena,
                   struct slice_range **out)
{
    const struct shown s = show(list, arena);
    const uint64_t *shown = count_shown(list, &s, arena);
    const uint32_t end = s.count > 0 ? end_of(&s.items[s.count - 1]) : 0;
    size_t count = 0, first = 0;
    *out = arena_alloc(arena, (end / block_bytes + 2) * sizeof **out);
    for (uint64_t at = 0; at < end; at += block_bytes) {
        const uint32_t from = (uint32_t)at;
        const uint32_t to = end - at < block_bytes ? end : (uint32_t)(at + block_bytes);
        struct block_use use = {0};
        while (first < s.count && end_of(&s.items[first]) <= from)
            first++;
        for (size_t i = first; i < s.count && s.items[i].at < to; i++) {
            const struct slice_entry *e = s.items[i].entry;
            const struct extent x = part(&s.items[i], from, to);
            if (e->slice != 0)
                add_use(&use, &x, is_wasteful(e, shown[e - list->entries]));
        }
        if (use.extents > 1 || use.wasteful)
            (*out)[count++] = (struct slice_range){use.from, use.to - use.from};
    }
    return count;
}
