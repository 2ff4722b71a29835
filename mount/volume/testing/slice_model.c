#include "mount/volume/testing/slice_model.h"

#include <assert.h>
#include <string.h>

void slice_model_lay(const struct slice_list *list, struct slice_cell *cells, uint32_t chunk_bytes)
{
    memset(cells, 0, chunk_bytes * sizeof *cells);
    for (size_t i = 0; i < list->count; i++) {
        const struct slice_entry *e = &list->entries[i];
        for (uint32_t b = 0; b < e->length; b++)
            cells[e->at + b] = (struct slice_cell){e->slice, e->slice != 0 ? e->offset + b : 0};
    }
}

static bool could_be_one(const struct extent *a, const struct extent *b)
{
    return a->entry == b->entry && (a->entry == NULL || a->offset + a->length == b->offset);
}

void slice_model_check(const struct slice_list *list, uint32_t at, uint32_t length,
                       uint32_t chunk_bytes, struct arena *arena)
{
    struct slice_cell *cells = arena_alloc(arena, chunk_bytes * sizeof *cells);
    struct extent *extents;
    uint32_t next = at;
    slice_model_lay(list, cells, chunk_bytes);
    size_t count = slices_resolve(list, at, length, arena, &extents);
    for (size_t i = 0; i < count; i++) {
        const struct extent *x = &extents[i];
        assert(x->at == next && x->length > 0);
        assert(i == 0 || !could_be_one(x - 1, x));
        for (uint32_t b = 0; b < x->length; b++) {
            const struct slice_cell *c = &cells[x->at + b];
            assert(c->slice == (x->entry != NULL ? x->entry->slice : 0));
            assert(x->entry == NULL || c->offset == x->offset + b);
        }
        next += x->length;
    }
    assert(next == at + length);
}

static bool shows(const struct slice_cell *cells, uint32_t chunk_bytes, uint64_t slice)
{
    for (uint32_t b = 0; b < chunk_bytes; b++) {
        if (cells[b].slice == slice)
            return true;
    }
    return false;
}

void slice_model_check_prune(const struct slice_list *list, uint32_t chunk_bytes,
                             struct arena *arena)
{
    struct slice_cell *before = arena_alloc(arena, chunk_bytes * sizeof *before);
    struct slice_cell *after = arena_alloc(arena, chunk_bytes * sizeof *after);
    struct slice_list kept = *list;
    slice_model_lay(list, before, chunk_bytes);
    struct slice_list gone = slices_prune(&kept, chunk_bytes, arena);
    slice_model_lay(&kept, after, chunk_bytes);
    assert(kept.count + gone.count == list->count);
    for (uint32_t b = 0; b < chunk_bytes; b++)
        assert(before[b].slice == after[b].slice && before[b].offset == after[b].offset);
    for (size_t i = 0; i < kept.count; i++)
        assert(shows(after, chunk_bytes, kept.entries[i].slice));
    assert(kept.count == 0 || kept.entries[0].slice != 0);
}
