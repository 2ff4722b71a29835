#include "plog/map.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"
#include "plog/map_parts.h"

static const char magic[8] = "dfcplogm";
enum { FORMAT = 1 };

struct header_bytes {
    char magic[8];
    uint32_t format, segments;
    uint64_t sum;
};
_Static_assert(sizeof(struct header_bytes) == PLOG_MERGED, "the header has a fixed size");

/* The next item of an array that grows. */
void *plog_map_grown(void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    *room = *room > 0 ? *room * 2 : 16;
    return xrealloc(items, *room * size);
}

void plog_extents_done(struct plog_extents *e)
{
    free(e->items);
    *e = (struct plog_extents){.count = 0};
}

struct plog_map *plog_map_new(void)
{
    return xcalloc(1, sizeof(struct plog_map));
}

void plog_map_free(struct plog_map *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->segments_count; i++)
        free(m->segments[i].index);
    free(m->segments);
    free(m->sorted);
    free(m->pieces);
    free(m->cuts);
    free(m->reach);
    free(m);
}

/* --- order ------------------------------------------------------------------------------------ */

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_names(const struct plog_segment_name *a, const struct plog_segment_name *b)
{
    int order = compare_numbers(a->epoch, b->epoch);
    order = order != 0 ? order : compare_numbers(a->writer, b->writer);
    return order != 0 ? order : compare_numbers(a->n, b->n);
}

int plog_map_compare(const struct plog_map *m, const struct place *a, const struct place *b)
{
    const int order = a->segment == b->segment
                          ? 0
                          : compare_names(&m->segments[a->segment].footer.name,
                                          &m->segments[b->segment].footer.name);
    return order != 0 ? order : compare_numbers(a->position, b->position);
}

static int compare_pieces(const void *a, const void *b)
{
    return compare_numbers(((const struct piece *)a)->record.start,
                           ((const struct piece *)b)->record.start);
}

/* Where the name is among the sorted ones, or would be. */
static size_t find(const struct plog_map *m, const struct plog_segment_name *name, bool *is_there)
{
    size_t from = 0, to = m->segments_count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (compare_names(&m->segments[m->sorted[middle]].footer.name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    *is_there = from < m->segments_count &&
                compare_names(&m->segments[m->sorted[from]].footer.name, name) == 0;
    return from;
}

bool plog_map_has(const struct plog_map *m, const struct plog_segment_name *name)
{
    bool is_there;
    (void)find(m, name, &is_there);
    return is_there;
}

/* --- memory ----------------------------------------------------------------------------------- */

uint64_t plog_footer_memory(const struct plog_footer *f)
{
    return sizeof(struct segment) + f->index_bytes + (uint64_t)f->records * sizeof(struct piece);
}

uint64_t plog_map_memory(const struct plog_map *m)
{
    return m->memory;
}

void plog_map_limit(struct plog_map *m, uint64_t bytes, const char *hint)
{
    m->memory_max = bytes;
    m->hint = hint;
}

static int check_memory(const struct plog_map *m, uint64_t more, struct error *err)
{
    if (m->memory_max == 0 || m->memory + more <= m->memory_max)
        return 0;
    return error_set(err, E_TOO_LARGE,
                     "the indexes of the plog need more than %llu bytes of memory%s%s",
                     (unsigned long long)m->memory_max, m->hint != NULL ? ": " : "",
                     m->hint != NULL ? m->hint : "");
}

/* --- making it -------------------------------------------------------------------------------- */

static void add_segment(struct plog_map *m, const struct plog_footer *f, const uint8_t *index,
                        size_t at)
{
    const size_t room = m->segments_room;
    m->segments =
        plog_map_grown(m->segments, m->segments_count, &m->segments_room, sizeof *m->segments);
    if (m->segments_room != room)
        m->sorted = xrealloc(m->sorted, m->segments_room * sizeof *m->sorted);
    memmove(&m->sorted[at + 1], &m->sorted[at], (m->segments_count - at) * sizeof *m->sorted);
    m->sorted[at] = m->segments_count;
    struct segment *s = &m->segments[m->segments_count++];
    *s = (struct segment){.footer = *f, .index = xmalloc(f->index_bytes + 1)};
    memcpy(s->index, index, f->index_bytes);
}

int plog_map_add(struct plog_map *m, const struct plog_footer *f, const uint8_t *index,
                 struct error *err)
{
    struct plog_cursor c = plog_index_records(f, index);
    struct piece p = {.place = {.segment = m->segments_count}};
    bool is_there;
    const size_t at = find(m, &f->name, &is_there);
    if (is_there)
        return 0;
    int code = check_memory(m, plog_footer_memory(f), err);
    if (code == 0)
        code = plog_index_check(f, index, err);
    if (code != 0)
        return code;
    m->memory += plog_footer_memory(f);
    add_segment(m, f, index, at);
    for (; plog_cursor_next(&c, &p.record, NULL) > 0; p.place.position++) {
        if (p.record.is_cut) {
            m->cuts = plog_map_grown(m->cuts, m->cuts_count, &m->cuts_room, sizeof *m->cuts);
            m->cuts[m->cuts_count++] = p;
        } else {
            m->pieces =
                plog_map_grown(m->pieces, m->pieces_count, &m->pieces_room, sizeof *m->pieces);
            m->pieces[m->pieces_count++] = p;
        }
    }
    m->is_ready = false;
    return 0;
}

int plog_map_parse(struct plog_map *m, const uint8_t *bytes, size_t len, struct error *err)
{
    struct header_bytes h;
    struct plog_footer f;
    if (len < sizeof h || memcmp(bytes, magic, sizeof magic) != 0)
        return error_set(err, E_CORRUPT, "it does not begin as a merged index does");
    memcpy(&h, bytes, sizeof h);
    if (le32toh(h.format) != FORMAT)
        return error_set(err, E_UNSUPPORTED, "format %u is of a later release", le32toh(h.format));
    size_t at = sizeof h;
    if (XXH3_64bits(bytes + at, len - at) != le64toh(h.sum))
        return error_set(err, E_CORRUPT, "the checksum of the merged index is wrong");
    for (uint32_t i = 0; i < le32toh(h.segments); i++) {
        if (len - at < PLOG_FOOTER)
            return error_set(err, E_CORRUPT, "segment %u of the merged index is cut short", i);
        int code = plog_footer_parse(bytes + at, &f, err);
        at += PLOG_FOOTER;
        if (code == 0 && len - at < f.index_bytes)
            code = error_set(err, E_CORRUPT, "its index is cut short");
        if (code == 0)
            code = plog_map_add(m, &f, bytes + at, err);
        if (code != 0) {
            error_wrap(err, "segment %u of the merged index", i);
            return code;
        }
        at += f.index_bytes;
    }
    return at == len ? 0 : error_set(err, E_CORRUPT, "the merged index is too long");
}

void plog_map_print(const struct plog_map *m, struct buf *out)
{
    struct header_bytes h = {.format = htole32(FORMAT),
                             .segments = htole32((uint32_t)m->segments_count)};
    const size_t at = out->len + sizeof h;
    uint8_t footer[PLOG_FOOTER];
    memcpy(h.magic, magic, sizeof magic);
    buf_append(out, &h, sizeof h);
    for (size_t i = 0; i < m->segments_count; i++) {
        const struct segment *s = &m->segments[m->sorted[i]];
        plog_footer_print(&s->footer, footer);
        buf_append(out, footer, sizeof footer);
        buf_append(out, s->index, s->footer.index_bytes);
    }
    h.sum = htole64(XXH3_64bits(out->data + at, out->len - at));
    memcpy(out->data + at - sizeof h, &h, sizeof h);
}

/* --- what the map says ------------------------------------------------------------------------ */

size_t plog_map_segments(const struct plog_map *m)
{
    return m->segments_count;
}

const struct plog_footer *plog_map_segment(const struct plog_map *m, size_t i)
{
    return &m->segments[i].footer;
}

const uint8_t *plog_map_index(const struct plog_map *m, size_t i)
{
    return m->segments[i].index;
}

uint64_t plog_map_bytes(const struct plog_map *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->segments_count; i++)
        bytes += m->segments[i].footer.name.bytes;
    return bytes;
}

uint32_t plog_map_epoch(const struct plog_map *m)
{
    return m->segments_count > 0 ? m->segments[m->sorted[m->segments_count - 1]].footer.name.epoch
                                 : 0;
}

/* The last cut, and the writes after it, say how long the file is. */
static uint64_t size_of(const struct plog_map *m)
{
    const struct piece *last = NULL;
    for (size_t i = 0; i < m->cuts_count; i++) {
        if (last == NULL || plog_map_compare(m, &m->cuts[i].place, &last->place) > 0)
            last = &m->cuts[i];
    }
    uint64_t size = last != NULL ? last->record.start : 0;
    for (size_t i = 0; i < m->pieces_count; i++) {
        const struct piece *p = &m->pieces[i];
        const uint64_t end = plog_record_end(&p->record);
        if (end > size && (last == NULL || plog_map_compare(m, &p->place, &last->place) > 0))
            size = end;
    }
    return size;
}

void plog_map_ready(struct plog_map *m)
{
    uint64_t reach = 0;
    if (m->is_ready)
        return;
    if (m->pieces_count > 0)
        qsort(m->pieces, m->pieces_count, sizeof *m->pieces, compare_pieces);
    m->reach = xrealloc(m->reach, (m->pieces_count + 1) * sizeof *m->reach);
    for (size_t i = 0; i < m->pieces_count; i++) {
        const uint64_t end = plog_record_end(&m->pieces[i].record);
        reach = end > reach ? end : reach;
        m->reach[i] = reach;
    }
    m->size = size_of(m);
    m->is_ready = true;
}

uint64_t plog_map_size(struct plog_map *m)
{
    plog_map_ready(m);
    return m->size;
}

/* The first piece that reaches beyond the range's begin: those before it do not touch it. */
size_t plog_map_first(const struct plog_map *m, uint64_t from)
{
    size_t low = 0, high = m->pieces_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (m->reach[middle] <= from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first byte of the piece from `from` on, which is before its end. */
static uint64_t next_of(const struct plog_record *r, uint64_t from)
{
    if (from <= r->start || r->stride == 0)
        return from > r->start ? from : r->start;
    const uint64_t within = (from - r->start) % r->stride;
    return within < r->length ? from : from + (r->stride - within);
}

bool plog_map_next(struct plog_map *m, uint64_t from, uint64_t *at)
{
    bool is_found = false;
    plog_map_ready(m);
    for (size_t i = plog_map_first(m, from); i < m->pieces_count; i++) {
        const struct plog_record *r = &m->pieces[i].record;
        if (is_found && r->start >= *at)
            break;
        if (plog_record_end(r) <= from)
            continue;
        const uint64_t next = next_of(r, from);
        *at = is_found && *at < next ? *at : next;
        is_found = true;
    }
    return is_found;
}
