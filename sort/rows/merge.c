/* A tree of losers (Knuth, The Art of Computer Programming 3, 5.4.1): each inner node has the
 * source that lost there, and the winner of all is above the root.  A new row is compared once on
 * each level.  The row that is out stays in its source until the next call, since that is how long
 * its name lives. */
#include "sort/rows/merge.h"

#include <assert.h>
#include <stdbool.h>

#include "common/mem.h"

struct input {
    struct row_source source;
    const uint32_t *map;
    struct sort_row row;
    bool ended;
};

struct merge {
    const struct sort_order *order;
    struct input *inputs;
    size_t count;
    size_t *losers; /* by node, from 1 on; 0: the winner.  `count`: nobody has come there yet */
    bool begun;
    bool clashes; /* two rows that were compared are equal */
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
    free(m->inputs);
    free(m->losers);
    free(m);
}

void merge_add(struct merge *m, struct row_source source, const uint32_t *map)
{
    assert(!m->begun);
    m->inputs = xrealloc(m->inputs, (m->count + 1) * sizeof *m->inputs);
    m->inputs[m->count++] = (struct input){.source = source, .map = map};
}

static int input_pull(struct input *in, struct error *err)
{
    int rc = in->source.next(in->source.ctx, &in->row, err);
    in->ended = rc == 0;
    if (rc > 0 && in->map != NULL)
        in->row.shard = in->map[in->row.shard];
    return rc;
}

/* Two sources can only bring the same row where two targets took the same shard.  The two meet
 * before one of them is out: what is equal to the winner has lost to it, or to a third. */
static bool comes_before(struct merge *m, size_t a, size_t b)
{
    if (m->inputs[a].ended || m->inputs[b].ended)
        return m->inputs[b].ended;
    int c = order_compare(m->order, &m->inputs[a].row, &m->inputs[b].row);
    m->clashes = m->clashes || c == 0;
    return c < 0;
}

/* From the source's leaf up to the root; before all have come, up to the first free node. */
static void merge_play(struct merge *m, size_t i)
{
    size_t winner = i;
    for (size_t node = (i + m->count) / 2; node > 0; node /= 2) {
        size_t other = m->losers[node];
        if (other == m->count) {
            m->losers[node] = winner;
            return;
        }
        if (comes_before(m, other, winner)) {
            m->losers[node] = winner;
            winner = other;
        }
    }
    m->losers[0] = winner;
}

static int merge_begin(struct merge *m, struct error *err)
{
    m->begun = true;
    m->losers = xcalloc(m->count + 1, sizeof *m->losers);
    for (size_t i = 0; i < m->count; i++)
        m->losers[i] = m->count;
    for (size_t i = 0; i < m->count; i++) {
        int rc = input_pull(&m->inputs[i], err);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < m->count; i++)
        merge_play(m, i);
    return 0;
}

/* The row that was out is done with. */
static int merge_advance(struct merge *m, struct error *err)
{
    size_t winner = m->losers[0];
    if (m->inputs[winner].ended)
        return 0;
    int rc = input_pull(&m->inputs[winner], err);
    if (rc < 0)
        return rc;
    merge_play(m, winner);
    return 0;
}

int merge_next(struct merge *m, struct sort_row *row, struct error *err)
{
    if (m->count == 0)
        return 0;
    int rc = m->begun ? merge_advance(m, err) : merge_begin(m, err);
    if (rc < 0)
        return rc;
    if (m->clashes)
        return error_set(err, E_CORRUPT, "two tables hold the same record of one shard");
    const struct input *first = &m->inputs[m->losers[0]];
    if (first->ended)
        return 0;
    *row = first->row;
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
