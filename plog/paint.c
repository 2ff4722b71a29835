/* Painting is a sweep: the runs that touch the range are sorted by where they begin.  A heap holds
 * those that have begun, the one with the greatest key on top; it is seen until it ends, or until
 * another one begins. */
#include <stdlib.h>

#include "common/mem.h"
#include "plog/map_parts.h"

struct run { /* what a piece or a cut does in a range */
    uint64_t start, end, physical;
    struct place place;
    bool is_cut;
};

struct canvas {
    const struct plog_map *map;
    uint64_t from, to;
    size_t runs_count, runs_room, heap_count;
    struct run *runs;
    size_t *heap; /* numbers of runs */
    struct plog_extents *out;
};

static int compare_runs(const void *a, const void *b)
{
    const uint64_t x = ((const struct run *)a)->start, y = ((const struct run *)b)->start;
    return (x > y) - (x < y);
}

static void add_run(struct canvas *c, struct run r)
{
    if (r.start < c->from) {
        r.physical += c->from - r.start;
        r.start = c->from;
    }
    r.end = r.end < c->to ? r.end : c->to;
    c->runs = plog_map_grown(c->runs, c->runs_count, &c->runs_room, sizeof *c->runs);
    c->runs[c->runs_count++] = r;
}

/* How many runs of a piece that begins before `to` touch the range; *first: number of the first. */
static uint64_t runs_of(const struct plog_record *r, uint64_t from, uint64_t to, uint64_t *first)
{
    *first = 0;
    if (r->stride == 0)
        return r->start + r->length > from;
    if (from >= r->start + r->length)
        *first = (from - r->start - r->length) / r->stride + 1;
    const uint64_t begin = (to - r->start - 1) / r->stride + 1; /* so many, of endless ones */
    const uint64_t end = begin < r->count ? begin : r->count;
    return end > *first ? end - *first : 0;
}

static void add_piece(struct canvas *c, const struct piece *p)
{
    const struct plog_record *r = &p->record;
    uint64_t first;
    const uint64_t count = runs_of(r, c->from, c->to, &first);
    for (uint64_t i = first; i < first + count; i++) {
        const uint64_t start = r->start + i * r->stride;
        add_run(c, (struct run){.start = start,
                                .end = start + r->length,
                                .physical = r->physical + i * r->length,
                                .place = p->place});
    }
}

/* The first run of each piece is not counted: the map has as much memory for the piece. */
static bool has_too_many(const struct plog_map *m, uint64_t from, uint64_t to)
{
    uint64_t further = 0, first;
    for (size_t i = plog_map_first(m, from); i < m->pieces_count; i++) {
        if (m->pieces[i].record.start >= to)
            break;
        const uint64_t runs = runs_of(&m->pieces[i].record, from, to, &first);
        const uint64_t more = runs > 0 ? runs - 1 : 0;
        if (more > PLOG_RUNS_MAX - further)
            return true;
        further += more;
    }
    return false;
}

/* Where the range must end.  A piece has one run at a byte, so a byte is never too much. */
static uint64_t shorten(const struct plog_map *m, uint64_t from, uint64_t to)
{
    while (to - from > 1 && has_too_many(m, from, to))
        to = from + (to - from) / 2;
    return to;
}

static void collect(struct canvas *c)
{
    const struct plog_map *m = c->map;
    for (size_t i = plog_map_first(m, c->from); i < m->pieces_count; i++) {
        if (m->pieces[i].record.start >= c->to)
            break;
        add_piece(c, &m->pieces[i]);
    }
    for (size_t i = 0; i < m->cuts_count; i++) {
        if (m->cuts[i].record.start < c->to)
            add_run(c, (struct run){.start = m->cuts[i].record.start,
                                    .end = c->to,
                                    .place = m->cuts[i].place,
                                    .is_cut = true});
    }
    if (c->runs_count > 0)
        qsort(c->runs, c->runs_count, sizeof *c->runs, compare_runs);
}

static bool is_above(const struct canvas *c, size_t a, size_t b)
{
    return plog_map_compare(c->map, &c->runs[c->heap[a]].place, &c->runs[c->heap[b]].place) > 0;
}

static void swap(struct canvas *c, size_t a, size_t b)
{
    const size_t run = c->heap[a];
    c->heap[a] = c->heap[b];
    c->heap[b] = run;
}

static void push(struct canvas *c, size_t run)
{
    size_t at = c->heap_count++;
    c->heap[at] = run;
    for (; at > 0 && is_above(c, at, (at - 1) / 2); at = (at - 1) / 2)
        swap(c, at, (at - 1) / 2);
}

static void pop(struct canvas *c)
{
    c->heap[0] = c->heap[--c->heap_count];
    for (size_t at = 0;;) {
        size_t best = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < c->heap_count; child++) {
            if (is_above(c, child, best))
                best = child;
        }
        if (best == at)
            return;
        swap(c, at, best);
        at = best;
    }
}

static void show(struct canvas *c, const struct run *r, uint64_t from, uint64_t to)
{
    struct plog_extents *out = c->out;
    const struct plog_extent e = {.start = from,
                                  .length = to - from,
                                  .physical = r->physical + (from - r->start),
                                  .segment = r->place.segment};
    struct plog_extent *last = out->count > 0 ? &out->items[out->count - 1] : NULL;
    if (r->is_cut)
        return;
    if (last != NULL && last->segment == e.segment && last->start + last->length == e.start &&
        last->physical + last->length == e.physical) {
        last->length += e.length;
        return;
    }
    out->items = plog_map_grown(out->items, out->count, &out->room, sizeof *out->items);
    out->items[out->count++] = e;
}

static void sweep(struct canvas *c)
{
    size_t next = 0;
    uint64_t at = c->from;
    while (true) {
        while (next < c->runs_count && c->runs[next].start <= at)
            push(c, next++);
        while (c->heap_count > 0 && c->runs[c->heap[0]].end <= at)
            pop(c);
        const uint64_t begins = next < c->runs_count ? c->runs[next].start : c->to;
        if (c->heap_count > 0) {
            const struct run *top = &c->runs[c->heap[0]];
            const uint64_t to = top->end < begins ? top->end : begins;
            show(c, top, at, to);
            at = to;
        } else if (next < c->runs_count) {
            at = begins;
        } else {
            return;
        }
    }
}

uint64_t plog_map_paint(struct plog_map *m, uint64_t from, uint64_t to, struct plog_extents *out)
{
    *out = (struct plog_extents){.count = 0};
    plog_map_ready(m);
    if (from >= to)
        return to;
    struct canvas c = {.map = m, .from = from, .to = shorten(m, from, to), .out = out};
    collect(&c);
    c.heap = xcalloc(c.runs_count + 1, sizeof *c.heap);
    sweep(&c);
    free(c.heap);
    free(c.runs);
    return c.to;
}
