#include "sort/task/extract_objects.h"

#include <pthread.h>

#include "common/fault.h"
#include "common/mem.h"
#include "io/pool.h"
#include "sort/shard/object_record.h"

#define BATCH 1024 /* objects whose rows are added under one lock */

struct extracting {
    const struct extract_objects *x;
    pthread_mutex_t lock; /* of the rows */
};

/* One thread's batch. */
struct batch {
    const struct extract_objects *x;
    struct object_record record;
    struct sort_row rows[BATCH];
    size_t names_at[BATCH];
    size_t count;
    struct buf names; /* of the rows */
    uint64_t bytes;
};

static uint64_t key_of(const struct sort_context *c, const char *object,
                       const struct object_record *r)
{
    uint64_t key = 0;
    if (c->order.algorithm == SORT_MD5)
        key = order_md5_key(r->path.data, r->path.len);
    if (c->order.algorithm == SORT_SHUFFLE)
        order_shuffle_keys(c->spec->seed, object, 0, &key, 1);
    return key;
}

static int add_object(struct batch *b, uint32_t shard, struct error *err)
{
    const struct sort_context *c = b->x->c;
    const struct catalog_shard *s = catalog_shard(b->x->catalog, shard);
    struct object_record *r = &b->record;
    int rc = object_record_make(r, c->spec, s->name, s->size, s->object->modified_s, err);
    if (rc != 0)
        return rc;
    catalog_set_record(b->x->catalog, shard, r->size);
    b->names_at[b->count] = b->names.len;
    buf_append(&b->names, r->path.data, r->path.len);
    b->rows[b->count++] = (struct sort_row){.name_len = (uint32_t)r->path.len,
                                            .shard = shard,
                                            .size = r->size,
                                            .key = key_of(c, s->name, r)};
    b->bytes += r->size;
    return 0;
}

static int add_rows(struct extracting *e, struct batch *b, struct error *err)
{
    int rc = 0;
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; rc == 0 && i < b->count; i++) {
        b->rows[i].name = buf_str(&b->names) + b->names_at[i];
        rc = rowset_add(e->x->rows, &b->rows[i], err);
    }
    pthread_mutex_unlock(&e->lock);
    return rc;
}

static int fill_batch(struct batch *b, size_t first, struct error *err)
{
    const struct extract_objects *x = b->x;
    int rc = links_check(x->c->links, err);
    int fault = fault_errno("sort.extract");
    if (rc == 0 && fault != 0)
        rc = error_errno(err, fault, "extract objects");
    for (size_t i = first; rc == 0 && i < x->count && i < first + BATCH; i++)
        rc = add_object(b, x->fresh[i], err);
    return rc;
}

static void count_batch(const struct batch *b)
{
    struct sort_progress *p = &b->x->c->progress;
    progress_add(&p->shards_done, b->count);
    progress_add(&p->records, b->count);
    progress_add(&p->record_bytes, b->bytes);
    sort_count("extract", b->count, b->bytes);
}

static int extract_batch(void *ctx, size_t number, struct error *err)
{
    struct extracting *e = ctx;
    _cleanup_free_ struct batch *b = xcalloc(1, sizeof *b);
    b->x = e->x;
    int rc = fill_batch(b, number * BATCH, err);
    if (rc == 0)
        rc = add_rows(e, b, err);
    if (rc == 0)
        count_batch(b);
    object_record_done(&b->record);
    buf_done(&b->names);
    return rc;
}

int extract_objects(const struct extract_objects *x, struct error *err)
{
    struct extracting e = {.x = x};
    pthread_mutex_init(&e.lock, NULL);
    int rc = parallel_for("sort-extract", x->c->extract_threads,
                          ((size_t)x->count + BATCH - 1) / BATCH, extract_batch, &e, err);
    pthread_mutex_destroy(&e.lock);
    return rc;
}
