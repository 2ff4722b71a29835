#include "sort/rows/rowset.h"

#include <assert.h>

#include "common/mem.h"
#include "sort/base/blob.h"
#include "sort/rows/merge.h"
#include "sort/rows/slot.h"

#define RUNS_MAX 64
#define NAMES_AHEAD 16 /* rows whose names are fetched before they are read */

struct run {
    struct blob_range range;
    uint64_t rows;
    struct decoder decoder; /* while it is read */
    struct row_reader reader;
    bool open;
};

struct rowset {
    const struct sort_env *env;
    const struct sort_order *order;
    char *block;
    size_t memory;
    unsigned threads;
    size_t slots; /* at the front of the block */
    size_t names; /* bytes at its back */
    uint64_t count;
    uint64_t bytes;
    uint64_t spilled;
    struct blob *file; /* the runs, one behind the other */
    struct run runs[RUNS_MAX];
    size_t run_count;
    struct merge *merge; /* once opened */
    bool ended;          /* has been opened: nothing is added any more */
    size_t cursor;       /* of the rows in memory */
};

int rowset_new(const struct sort_env *env, const struct sort_order *order, uint64_t memory,
               unsigned threads, struct rowset **out, struct error *err)
{
    if (memory < ROWSET_MEMORY_MIN)
        memory = ROWSET_MEMORY_MIN;
    memory -= memory % sizeof(struct slot);
    /* Pages of it that are never used never exist. */
    char *block = malloc((size_t)memory);
    if (block == NULL)
        return error_set(err, E_NOMEM, "no memory for a table of %llu bytes",
                         (unsigned long long)memory);
    struct rowset *s = xcalloc(1, sizeof *s);
    *s = (struct rowset){
        .env = env, .order = order, .block = block, .memory = (size_t)memory, .threads = threads};
    *out = s;
    return 0;
}

static void run_close(struct run *r)
{
    if (!r->open)
        return;
    row_reader_done(&r->reader);
    decoder_done(&r->decoder);
    r->open = false;
}

void rowset_close(struct rowset *s)
{
    merge_free(steal(s->merge));
    for (size_t i = 0; i < s->run_count; i++)
        run_close(&s->runs[i]);
}

void rowset_free(struct rowset *s)
{
    if (s == NULL)
        return;
    rowset_close(s);
    blob_free(s->file);
    free(s->block);
    free(s);
}

uint64_t rowset_count(const struct rowset *s)
{
    return s->count;
}

uint64_t rowset_bytes(const struct rowset *s)
{
    return s->bytes;
}

uint64_t rowset_spilled(const struct rowset *s)
{
    return s->spilled;
}

static struct slot *rowset_slots(const struct rowset *s)
{
    return (struct slot *)(void *)s->block;
}

static void rowset_row(const struct rowset *s, size_t i, struct sort_row *row)
{
    const struct slot *slot = &rowset_slots(s)[i];
    *row = (struct sort_row){
        .name = s->block + slot->name,
        .name_len = slot->name_len,
        .shard = slot->shard,
        .position = slot->position,
        .group = slot->group,
        .size = slot->size,
        .key = slot->key,
    };
}

static void rowset_sort(struct rowset *s)
{
    slots_sort(rowset_slots(s), s->slots, s->block, s->order, s->threads);
}

static int run_write(struct rowset *s, struct blob *file, struct row_source source, struct run *run,
                     struct error *err)
{
    struct encoder e;
    struct row_writer w;
    uint64_t start = blob_size(file);
    encoder_init(&e, sink_blob(file));
    row_writer_init(&w, &e, s->order);
    struct sort_row row;
    int rc;
    uint64_t rows = 0;
    while ((rc = source.next(source.ctx, &row, err)) > 0) {
        rc = row_writer_put(&w, &row, err);
        if (rc != 0)
            break;
        rows++;
    }
    if (rc == 0)
        rc = encoder_flush(&e, err);
    row_writer_done(&w);
    encoder_done(&e);
    *run = (struct run){.range = {.blob = file, .at = start, .end = blob_size(file)}, .rows = rows};
    s->spilled += run->range.end - start;
    return rc;
}

static int run_next(void *ctx, struct sort_row *row, struct error *err)
{
    struct run *r = ctx;
    return row_reader_next(&r->reader, row, err);
}

static struct row_source run_open(struct rowset *s, struct run *r)
{
    decoder_init(&r->decoder, source_blob(&r->range));
    row_reader_init(&r->reader, &r->decoder, s->order, UINT32_MAX, r->rows);
    r->open = true;
    return (struct row_source){.next = run_next, .ctx = r};
}

static int memory_next(void *ctx, struct sort_row *row, struct error *err)
{
    (void)err;
    struct rowset *s = ctx;
    if (s->cursor == s->slots)
        return 0;
    if (s->slots - s->cursor > NAMES_AHEAD) /* names lie in the order of their coming */
        __builtin_prefetch(s->block + rowset_slots(s)[s->cursor + NAMES_AHEAD].name);
    rowset_row(s, s->cursor++, row);
    return 1;
}

/* All runs, and whatever else the caller adds to the merge. */
static struct merge *runs_merge(struct rowset *s, const uint32_t *map)
{
    struct merge *m = merge_new(s->order);
    for (size_t i = 0; i < s->run_count; i++)
        merge_add(m, run_open(s, &s->runs[i]), map);
    return m;
}

/* They become one; map: as merge_add() takes it. */
static int runs_compact(struct rowset *s, const uint32_t *map, struct error *err)
{
    _cleanup_(blob_freep)
    struct blob *file = blob_new(s->env, 0);
    _cleanup_(merge_freep)
    struct merge *m = runs_merge(s, map);
    struct run all;
    int rc = run_write(s, file, merge_source(m), &all, err);
    for (size_t i = 0; i < s->run_count; i++)
        run_close(&s->runs[i]);
    if (rc != 0)
        return rc;
    blob_free(s->file);
    s->file = steal(file);
    s->runs[0] = all;
    s->run_count = 1;
    return 0;
}

static int rowset_spill(struct rowset *s, struct error *err)
{
    if (s->file == NULL)
        s->file = blob_new(s->env, 0);
    int rc = s->run_count == RUNS_MAX ? runs_compact(s, NULL, err) : 0;
    if (rc != 0)
        return rc;
    rowset_sort(s);
    s->cursor = 0;
    struct row_source memory = {.next = memory_next, .ctx = s};
    rc = run_write(s, s->file, memory, &s->runs[s->run_count], err);
    if (rc != 0)
        return rc;
    s->run_count++;
    s->slots = 0;
    s->names = 0;
    return 0;
}

int rowset_add(struct rowset *s, const struct sort_row *row, struct error *err)
{
    assert(!s->ended && row->name_len <= ROW_NAME_MAX);
    size_t used = s->slots * sizeof(struct slot) + s->names;
    if (s->memory - used < sizeof(struct slot) + row->name_len) {
        int rc = rowset_spill(s, err);
        if (rc != 0)
            return rc;
    }
    s->names += row->name_len;
    size_t name = s->memory - s->names;
    memcpy(s->block + name, row->name, row->name_len);
    rowset_slots(s)[s->slots++] = (struct slot){
        .key = row->key,
        .size = row->size,
        .name = name,
        .name_len = row->name_len,
        .shard = row->shard,
        .position = row->position,
        .group = row->group,
    };
    s->count++;
    s->bytes += row->size;
    return 0;
}

int rowset_open(struct rowset *s, struct row_source *out, struct error *err)
{
    (void)err;
    assert(s->merge == NULL);
    if (!s->ended)
        rowset_sort(s);
    s->ended = true;
    s->cursor = 0;
    s->merge = runs_merge(s, NULL);
    merge_add(s->merge, (struct row_source){.next = memory_next, .ctx = s}, NULL);
    *out = merge_source(s->merge);
    return 0;
}

int rowset_renumber(struct rowset *s, const uint32_t *map, struct error *err)
{
    assert(s->merge == NULL);
    for (size_t i = 0; i < s->slots; i++)
        rowset_slots(s)[i].shard = map[rowset_slots(s)[i].shard];
    s->ended = false;
    return s->run_count > 0 ? runs_compact(s, map, err) : 0;
}
