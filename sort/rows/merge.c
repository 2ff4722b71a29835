/* A binary heap of the sources' first rows.  The row that is out stays in its source until the next
 * call, since that is how long its name lives. */
#include "sort/rows/merge.h"

#include <assert.h>
#include <stdbool.h>

#include "common/mem.h"

struct input {
    struct row_source source;
    const uint32_t *map;
    struct sort_row row;
};

struct merge {
    const struct sort_order *order;
    struct input *heap; /* heap[0] has the first row */
    size_t count;
    bool begun;
};

struct merge *merge_new(const struct sort_order *order)
{
    struct merge *m = xcalloc(1, sizeof *m);
    m->order = order;
    return m;
}

void merge_free(struct merge *m)
{
    if (m == NULL)
        return;
    free(m->heap);
    free(m);
}

void merge_add(struct merge *m, struct row_source source, const uint32_t *map)
{
    assert(!m->begun);
    m->heap = xrealloc(m->heap, (m->count + 1) * sizeof *m->heap);
    m->heap[m->count++] = (struct input){.source = source, .map = map};
}

static int input_pull(struct input *in, struct error *err)
{
    int rc = in->source.next(in->source.ctx, &in->row, err);
    if (rc > 0 && in->map != NULL)
        in->row.shard = in->map[in->row.shard];
    return rc;
}

static bool comes_before(const struct merge *m, size_t a, size_t b)
{
    return order_compare(m->order, &m->heap[a].row, &m->heap[b].row) < 0;
}

static void merge_sink(struct merge *m, size_t i)
{
    for (;;) {
        size_t first = i;
        size_t left = 2 * i + 1;
        if (left < m->count && comes_before(m, left, first))
            first = left;
        if (left + 1 < m->count && comes_before(m, left + 1, first))
            first = left + 1;
        if (first == i)
            return;
        struct input moved = m->heap[i];
        m->heap[i] = m->heap[first];
        m->heap[first] = moved;
        i = first;
    }
}

static int merge_begin(struct merge *m, struct error *err)
{
    m->begun = true;
    for (size_t i = 0; i < m->count;) {
        int rc = input_pull(&m->heap[i], err);
        if (rc < 0)
            return rc;
        if (rc > 0)
            i++;
        else
            m->heap[i] = m->heap[--m->count];
    }
    for (size_t i = m->count; i-- > 0;)
        merge_sink(m, i);
    return 0;
}

/* The row that was out is done with. */
static int merge_advance(struct merge *m, struct error *err)
{
    int rc = input_pull(&m->heap[0], err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        m->heap[0] = m->heap[--m->count];
    merge_sink(m, 0);
    return 0;
}

/* Two sources can only bring the same row where two targets took the same shard. */
static bool merge_clashes(const struct merge *m)
{
    for (size_t i = 1; i <= 2 && i < m->count; i++) {
        if (order_compare(m->order, &m->heap[0].row, &m->heap[i].row) == 0)
            return true;
    }
    return false;
}

int merge_next(struct merge *m, struct sort_row *row, struct error *err)
{
    int rc = m->begun ? (m->count > 0 ? merge_advance(m, err) : 0) : merge_begin(m, err);
    if (rc < 0 || m->count == 0)
        return rc;
    if (merge_clashes(m))
        return error_set(err, E_CORRUPT, "two tables hold the same record of one shard");
    *row = m->heap[0].row;
    return 1;
}

static int merge_source_next(void *ctx, struct sort_row *row, struct error *err)
{
    return merge_next(ctx, row, err);
}

struct row_source merge_source(struct merge *m)
{
    return (struct row_source){.next = merge_source_next, .ctx = m};
}
