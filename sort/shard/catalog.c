/* A shard's index comes in parts of some hundred records, which may lie anywhere in the blob:
 *
 *     entry[records]     {offset, length}: the record is this range of the shard; or, with COMPLEX
 *                        in offset, the list at that offset of the heap, and the sum of lengths
 *     heap               lists: count, then {offset, length} of each piece; with INLINE in length,
 *                        bytes at that offset of the heap
 *
 * Numbers are the machine's own: the index never leaves it. */
#include "sort/shard/catalog.h"

#include <assert.h>
#include <pthread.h>

#include "common/mem.h"
#include "sort/base/blob.h"

#define COMPLEX (UINT64_C(1) << 63)
#define INLINE (UINT64_C(1) << 63)

/* A part ends with whichever it reaches first. */
#define PART_RECORDS 1024
#define PART_HEAP (256 * 1024)

struct entry {
    uint64_t offset;
    uint64_t length;
};

struct catalog_part {
    uint64_t at;    /* in the index */
    uint32_t first; /* position */
};

struct catalog {
    const struct sort_env *env;
    struct catalog_shard *shards;
    size_t count, cap;
    uint32_t open_max;
    pthread_mutex_t lock; /* of appending to the index */
    struct blob *index;
    struct fdcache *files;
    const struct sort_spec *spec;
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
    for (size_t i = 0; i < c->count; i++) {
        free(c->shards[i].name);
        free(c->shards[i].parts);
        free(c->shards[i].object);
    }
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
    c->shards[c->count++] = (struct catalog_shard){
        .name = xstrdup(name), .place = place, .size = size, .contents_fd = -1};
}

void catalog_add_object(struct catalog *c, const struct sort_shard_info *info)
{
    catalog_add(c, info->name, info->place, info->size);
    struct catalog_object *o = xmalloc(sizeof *o);
    *o = (struct catalog_object){.modified_s = info->modified_s, .checksum = info->checksum};
    c->shards[c->count - 1].object = o;
}

void catalog_set_spec(struct catalog *c, const struct sort_spec *spec)
{
    c->spec = spec;
}

const struct sort_spec *catalog_spec(const struct catalog *c)
{
    return c->spec;
}

const char *catalog_bucket(const struct catalog *c)
{
    return c->spec != NULL ? c->spec->input_bucket : "";
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

void catalog_sort(struct catalog *c, uint32_t *map)
{
    fdcache_free(c->files);
    for (size_t i = 0; i < c->count; i++)
        c->shards[i].before = (uint32_t)i;
    if (c->count > 1)
        qsort(c->shards, c->count, sizeof *c->shards, compare_shards);
    for (size_t i = 0; map != NULL && i < c->count; i++)
        map[c->shards[i].before] = (uint32_t)i;
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

void catalog_set_contents(struct catalog *c, uint32_t shard, int fd, uint64_t at)
{
    assert(shard < c->count);
    c->shards[shard].contents_fd = fd;
    c->shards[shard].contents_at = at;
}

void catalog_set_record(struct catalog *c, uint32_t shard, uint64_t size)
{
    assert(shard < c->count && c->shards[shard].object != NULL);
    c->shards[shard].object->record_size = size;
    c->shards[shard].records = 1;
}

int catalog_open(const struct catalog *c, uint32_t shard, int *fd, uint64_t *at, struct error *err)
{
    const struct catalog_shard *s = catalog_shard(c, shard);
    *fd = s->contents_fd;
    *at = s->contents_at;
    return *fd >= 0 ? 0 : fdcache_get(c->files, shard, fd, err);
}

void catalog_close(const struct catalog *c, uint32_t shard)
{
    if (catalog_shard(c, shard)->contents_fd < 0)
        fdcache_put(c->files, shard);
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

/* --- writing ---------------------------------------------------------------------------------- */

void catalog_writer_init(struct catalog_writer *w, struct catalog *c, uint32_t shard)
{
    assert(shard < c->count && c->shards[shard].records == 0);
    *w = (struct catalog_writer){.catalog = c, .shard = shard};
}

void catalog_writer_done(struct catalog_writer *w)
{
    buf_done(&w->entries);
    buf_done(&w->heap);
}

/* The bytes go before the list, which thereby knows where they are. */
static struct entry put_list(struct catalog_writer *w, const struct record_piece *pieces,
                             size_t count, const char *inlines)
{
    _cleanup_free_ struct entry *list = xcalloc(count + 1, sizeof *list);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const struct record_piece *p = &pieces[i];
        list[i] = (struct entry){.offset = p->offset, .length = p->length};
        if (p->is_inline) {
            list[i].offset =
                last_bytes_put(&w->last_inline, &w->heap, inlines + p->offset, (size_t)p->length);
            list[i].length |= INLINE;
        }
        sum += p->length;
    }
    struct entry e = {.offset = w->heap.len | COMPLEX, .length = sum};
    uint64_t n = count;
    buf_append(&w->heap, &n, sizeof n);
    buf_append(&w->heap, list, count * sizeof *list);
    return e;
}

static struct catalog_part *part_new(struct catalog_shard *s)
{
    /* Doubled when the count is a power of two. */
    if ((s->part_count & (s->part_count - 1)) == 0)
        s->parts = xrealloc(s->parts, (s->part_count == 0 ? 1 : 2 * (size_t)s->part_count) *
                                          sizeof *s->parts);
    return &s->parts[s->part_count++];
}

static int part_write(struct catalog_writer *w, struct error *err)
{
    struct catalog *c = w->catalog;
    struct catalog_shard *s = &c->shards[w->shard];
    struct catalog_part *part = part_new(s);
    pthread_mutex_lock(&c->lock);
    *part = (struct catalog_part){.at = blob_size(c->index), .first = w->first};
    int rc = blob_append(c->index, w->entries.data, w->entries.len, err);
    if (rc == 0)
        rc = blob_append(c->index, w->heap.data, w->heap.len, err);
    pthread_mutex_unlock(&c->lock);
    w->first = s->records;
    buf_clear(&w->entries);
    buf_clear(&w->heap);
    w->last_inline = (struct last_bytes){0};
    return rc;
}

int catalog_writer_add(struct catalog_writer *w, const struct record_piece *pieces, size_t count,
                       const char *inlines, struct error *err)
{
    struct catalog_shard *s = &w->catalog->shards[w->shard];
    struct entry e = count == 1 && !pieces[0].is_inline
                         ? (struct entry){pieces[0].offset, pieces[0].length}
                         : put_list(w, pieces, count, inlines);
    buf_append(&w->entries, &e, sizeof e);
    s->records++;
    bool full = s->records - w->first == PART_RECORDS || w->heap.len >= PART_HEAP;
    return full ? part_write(w, err) : 0;
}

int catalog_writer_finish(struct catalog_writer *w, struct error *err)
{
    return w->entries.len > 0 ? part_write(w, err) : 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* The part that has a position, by bisection. */
static uint32_t part_find(const struct catalog_shard *s, uint32_t position)
{
    uint32_t low = 0;
    for (uint32_t end = s->part_count; end - low > 1;) {
        uint32_t middle = low + (end - low) / 2;
        if (s->parts[middle].first <= position)
            low = middle;
        else
            end = middle;
    }
    return low;
}

static uint64_t entry_at(const struct catalog_part *part, uint32_t position)
{
    return part->at + (uint64_t)(position - part->first) * sizeof(struct entry);
}

static bool has_record(const struct catalog *c, uint32_t shard, uint32_t position)
{
    return shard < c->count && position < c->shards[shard].records;
}

void catalog_prefetch(const struct catalog *c, uint32_t shard, uint32_t position)
{
    if (!has_record(c, shard, position))
        return;
    const struct catalog_shard *s = &c->shards[shard];
    if (s->object != NULL)
        __builtin_prefetch(s->object);
    else
        blob_prefetch(c->index, entry_at(&s->parts[part_find(s, position)], position));
}

int catalog_find(const struct catalog *c, uint32_t shard, uint32_t position,
                 struct record_place *out, struct error *err)
{
    if (!has_record(c, shard, position))
        return error_set(err, E_INVALID, "this target has no record %u of a shard %u", position,
                         shard);
    const struct catalog_shard *s = &c->shards[shard];
    if (s->object != NULL) {
        *out = (struct record_place){
            .shard = shard, .is_object = true, .size = s->object->record_size};
        return 0;
    }
    uint32_t number = part_find(s, position);
    const struct catalog_part *part = &s->parts[number];
    uint32_t next = number + 1 < s->part_count ? part[1].first : s->records;
    struct entry e;
    int rc = blob_read(c->index, entry_at(part, position), &e, sizeof e, err);
    if (rc != 0)
        return rc;
    *out = (struct record_place){
        .shard = shard,
        .size = e.length,
        .heap = part->at + (uint64_t)(next - part->first) * sizeof e,
    };
    if ((e.offset & COMPLEX) == 0) {
        out->pieces = 1;
        out->only = (struct record_piece){.offset = e.offset, .length = e.length};
        return 0;
    }
    uint64_t count = 0;
    out->list = out->heap + (e.offset & ~COMPLEX) + sizeof count;
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
    return blob_read(c->index, r->heap + p->offset + offset, out, len, err);
}
