/* A shard's index:
 *
 *     entry[records]     {offset, length}: the record is this range of the shard; or, with COMPLEX
 *                        in offset, the list at that offset of the index, and the sum of lengths
 *     lists              count, then {offset, length} of each piece; with INLINE in length, bytes
 *                        of the index itself
 *     inline bytes
 *
 * Numbers are the machine's own: the index never leaves it. */
#include "sort/catalog.h"

#include <assert.h>
#include <pthread.h>

#include "common/mem.h"
#include "sort/blob.h"

#define COMPLEX (UINT64_C(1) << 63)
#define INLINE (UINT64_C(1) << 63)

struct entry {
    uint64_t offset;
    uint64_t length;
};

struct catalog {
    const struct sort_env *env;
    struct catalog_shard *shards;
    size_t count, cap;
    uint32_t open_max;
    pthread_mutex_t lock; /* of appending to the index */
    struct blob *index;
    struct fdcache *files;
};

struct catalog *catalog_new(const struct sort_env *env, uint64_t memory_limit, uint32_t open_max)
{
    struct catalog *c = xcalloc(1, sizeof *c);
    c->env = env;
    c->open_max = open_max;
    c->index = blob_new(env, memory_limit);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void catalog_free(struct catalog *c)
{
    if (c == NULL)
        return;
    fdcache_free(c->files);
    blob_free(c->index);
    for (size_t i = 0; i < c->count; i++)
        free(c->shards[i].name);
    free(c->shards);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void catalog_add(struct catalog *c, const char *name, uint64_t place, uint64_t size)
{
    if (c->count == c->cap) {
        c->cap = c->cap == 0 ? 16 : 2 * c->cap;
        c->shards = xrealloc(c->shards, c->cap * sizeof *c->shards);
    }
    c->shards[c->count++] =
        (struct catalog_shard){.name = xstrdup(name), .place = place, .size = size};
}

static int compare_shards(const void *left, const void *right)
{
    const struct catalog_shard *a = left;
    const struct catalog_shard *b = right;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int open_file(void *ctx, uint32_t file, int *fd, struct error *err)
{
    struct catalog *c = ctx;
    int rc = c->env->open_shard(c->env->ctx, c->shards[file].name, fd, err);
    return rc != 0 ? error_wrap(err, "open shard '%s'", c->shards[file].name) : 0;
}

void catalog_sort(struct catalog *c)
{
    assert(c->files == NULL);
    if (c->count > 1)
        qsort(c->shards, c->count, sizeof *c->shards, compare_shards);
    c->files = fdcache_new((uint32_t)c->count, c->open_max, open_file, c);
}

uint32_t catalog_count(const struct catalog *c)
{
    return (uint32_t)c->count;
}

const struct catalog_shard *catalog_shard(const struct catalog *c, uint32_t shard)
{
    assert(shard < c->count);
    return &c->shards[shard];
}

struct fdcache *catalog_files(const struct catalog *c)
{
    return c->files;
}

int catalog_dict(const struct catalog *c, unsigned self, struct dict **out, struct error *err)
{
    _cleanup_(dict_freep)
    struct dict *d = dict_new();
    for (size_t i = 0; i < c->count; i++)
        dict_add(d, &(struct dict_entry){.name = c->shards[i].name,
                                         .place = c->shards[i].place,
                                         .owner = self,
                                         .local = (uint32_t)i});
    int rc = dict_sort(d, err);
    if (rc == 0)
        *out = steal(d);
    return rc;
}

/* A record of several pieces: its list goes behind the entries, its inline bytes behind the lists.
 */
static struct entry put_list(const struct record_piece *pieces, size_t count, uint64_t lists_at,
                             struct buf *lists)
{
    struct entry e = {.offset = (lists_at + lists->len) | COMPLEX};
    uint64_t n = count;
    buf_append(lists, &n, sizeof n);
    for (size_t i = 0; i < count; i++) {
        struct entry piece = {
            .offset = pieces[i].offset,
            .length = pieces[i].length | (pieces[i].is_inline ? INLINE : 0),
        };
        buf_append(lists, &piece, sizeof piece);
        e.length += pieces[i].length;
    }
    return e;
}

/* Entries and lists.  Inline pieces count from the inline bytes' start, which is known only when
 * all lists are: an index keeps it in front. */
static void encode_index(const struct record_table *t, struct buf *entries, struct buf *lists)
{
    size_t count = record_table_count(t);
    uint64_t lists_at = sizeof(uint64_t) + count * sizeof(struct entry);
    _cleanup_(buf_done)
    struct buf found = BUF_INIT;
    for (size_t i = 0; i < count; i++) {
        buf_clear(&found);
        record_table_pieces(t, i, &found);
        const struct record_piece *pieces = (const void *)found.data;
        size_t n = found.len / sizeof *pieces;
        struct entry e = n == 1 && !pieces[0].is_inline
                             ? (struct entry){pieces[0].offset, pieces[0].length}
                             : put_list(pieces, n, lists_at, lists);
        buf_append(entries, &e, sizeof e);
    }
}

int catalog_put(struct catalog *c, uint32_t shard, const struct record_table *t, struct error *err)
{
    assert(shard < c->count);
    _cleanup_(buf_done)
    struct buf entries = BUF_INIT;
    _cleanup_(buf_done)
    struct buf lists = BUF_INIT;
    buf_reserve(&entries, record_table_count(t) * sizeof(struct entry));
    encode_index(t, &entries, &lists);
    uint64_t inline_at = sizeof inline_at + entries.len + lists.len;
    const struct buf *inlines = record_table_inline(t);
    pthread_mutex_lock(&c->lock);
    struct catalog_shard *s = &c->shards[shard];
    s->base = blob_size(c->index);
    s->records = (uint32_t)record_table_count(t);
    int rc = blob_append(c->index, &inline_at, sizeof inline_at, err);
    if (rc == 0)
        rc = blob_append(c->index, entries.data, entries.len, err);
    if (rc == 0)
        rc = blob_append(c->index, lists.data, lists.len, err);
    if (rc == 0)
        rc = blob_append(c->index, inlines->data, inlines->len, err);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int catalog_find(const struct catalog *c, uint32_t shard, uint32_t position,
                 struct record_place *out, struct error *err)
{
    if (shard >= c->count || position >= c->shards[shard].records)
        return error_set(err, E_INVALID, "this target has no record %u of a shard %u", position,
                         shard);
    uint64_t base = c->shards[shard].base;
    struct entry e;
    uint64_t at = base + sizeof(uint64_t) + (uint64_t)position * sizeof e;
    int rc = blob_read(c->index, at, &e, sizeof e, err);
    if (rc != 0)
        return rc;
    *out = (struct record_place){.shard = shard, .size = e.length};
    if ((e.offset & COMPLEX) == 0) {
        out->pieces = 1;
        out->only = (struct record_piece){.offset = e.offset, .length = e.length};
        return 0;
    }
    uint64_t count = 0;
    out->list = base + (e.offset & ~COMPLEX) + sizeof count;
    rc = blob_read(c->index, out->list - sizeof count, &count, sizeof count, err);
    out->pieces = (uint32_t)count;
    return rc;
}

int catalog_piece(const struct catalog *c, const struct record_place *r, uint32_t i,
                  struct record_piece *out, struct error *err)
{
    assert(i < r->pieces);
    if (r->list == 0) {
        *out = r->only;
        return 0;
    }
    struct entry e;
    int rc = blob_read(c->index, r->list + i * sizeof e, &e, sizeof e, err);
    *out = (struct record_piece){
        .is_inline = (e.length & INLINE) != 0,
        .offset = e.offset,
        .length = e.length & ~INLINE,
    };
    return rc;
}

int catalog_inline(const struct catalog *c, const struct record_place *r,
                   const struct record_piece *p, uint64_t offset, void *out, size_t len,
                   struct error *err)
{
    assert(p->is_inline && offset + len <= p->length);
    uint64_t base = c->shards[r->shard].base;
    uint64_t inline_at = 0;
    int rc = blob_read(c->index, base, &inline_at, sizeof inline_at, err);
    return rc != 0 ? rc : blob_read(c->index, base + inline_at + p->offset + offset, out, len, err);
}
