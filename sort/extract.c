#include "sort/extract.h"

#include <pthread.h>

#include "common/fault.h"
#include "common/mem.h"
#include "io/pool.h"
#include "sort/tar.h"

struct extract {
    struct sort_context *c;
    struct catalog *catalog;
    struct rowset *rows;
    pthread_mutex_t lock; /* of rows */
};

static int note_missing(struct sort_context *c, const struct sort_shard_info *info,
                        struct error *err)
{
    if (c->spec->missing_shards == SORT_ABORT)
        return error_set(err, E_SHARD_MISSING, "shard '%s/%s' does not exist",
                         c->spec->input_bucket, info->name);
    if (c->spec->missing_shards == SORT_WARN)
        notes_add(&c->notes, "shard '%s' does not exist", info->name);
    return 0;
}

static int each_shard(void *arg, const struct sort_shard_info *info, struct error *err)
{
    struct extract *x = arg;
    int rc = links_check(x->c->links, err);
    if (rc != 0)
        return rc;
    if (info->missing)
        return note_missing(x->c, info, err);
    if (catalog_count(x->catalog) == SORT_SHARDS_MAX)
        return error_set(err, E_SPEC, "the request has more than %u input shards", SORT_SHARDS_MAX);
    catalog_add(x->catalog, info->name, info->place, info->size);
    return 0;
}

static int add_member(struct sort_context *c, const char *shard, struct record_table *t,
                      const struct tar_member *m, struct error *err)
{
    int shown = (int)(m->path_len < 256 ? m->path_len : 256);
    if (m->type == '5') {
        notes_add(&c->notes, "shard '%s': directory '%.*s' is left out", shard, shown, m->path);
        return 0;
    }
    bool replaced = false;
    int rc = record_table_add(t, m, &replaced, err);
    if (rc == 0 && replaced && c->spec->duplicated_records == SORT_WARN)
        notes_add(&c->notes, "shard '%s': '%.*s' comes twice; the later one is kept", shard, shown,
                  m->path);
    return rc;
}

static int scan_members(struct extract *x, const struct catalog_shard *s, int fd,
                        struct record_table *t, struct error *err)
{
    _cleanup_(tar_scan_freep)
    struct tar_scan *scan = tar_scan_new(fd, s->size, s->name);
    struct tar_member m;
    int rc;
    while ((rc = tar_scan_next(scan, &m, err)) > 0) {
        rc = add_member(x->c, s->name, t, &m, err);
        if (rc == 0)
            rc = links_check(x->c->links, err);
        if (rc != 0)
            return rc;
    }
    return rc != 0 ? rc : record_table_finish(t, err);
}

/* The keys are made before the lock is taken, since they cost more than all the rest. */
static uint64_t *make_keys(const struct sort_context *c, const char *shard, size_t count)
{
    if (c->order.algorithm != SORT_SHUFFLE)
        return NULL;
    uint64_t *keys = xcalloc(count + 1, sizeof *keys);
    for (size_t i = 0; i < count; i++)
        keys[i] = order_shuffle_key(c->spec->seed, shard, i);
    return keys;
}

static uint64_t sum_lengths(const struct buf *found)
{
    const struct record_piece *pieces = (const void *)found->data;
    uint64_t sum = 0;
    for (size_t i = 0; i < found->len / sizeof *pieces; i++)
        sum += pieces[i].length;
    return sum;
}

static int add_rows(struct extract *x, uint32_t shard, const struct record_table *t,
                    struct error *err)
{
    struct sort_context *c = x->c;
    size_t count = record_table_count(t);
    _cleanup_free_ uint64_t *keys = make_keys(c, catalog_shard(x->catalog, shard)->name, count);
    _cleanup_(buf_done)
    struct buf pieces = BUF_INIT;
    uint64_t bytes = 0;
    int rc = 0;
    pthread_mutex_lock(&x->lock);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        size_t len = 0;
        const char *name = record_table_name(t, i, &len);
        buf_clear(&pieces);
        record_table_pieces(t, i, &pieces);
        struct sort_row row = {
            .name = name,
            .name_len = (uint32_t)len,
            .shard = shard,
            .position = (uint32_t)i,
            .size = sum_lengths(&pieces),
            .key = keys != NULL ? keys[i] : 0,
        };
        rc = rowset_add(x->rows, &row, err);
        bytes += row.size;
    }
    pthread_mutex_unlock(&x->lock);
    progress_add(&c->progress.records, count);
    progress_add(&c->progress.record_bytes, bytes);
    sort_count("extract", count, bytes);
    return rc;
}

static int scan_shard(void *ctx, size_t i, struct error *err)
{
    struct extract *x = ctx;
    struct sort_context *c = x->c;
    uint32_t shard = (uint32_t)i;
    const struct catalog_shard *s = catalog_shard(x->catalog, shard);
    int rc = links_check(c->links, err);
    int fault = fault_errno("sort.extract");
    if (rc == 0 && fault != 0)
        rc = error_errno(err, fault, "extract shard '%s'", s->name);
    int fd = -1;
    if (rc == 0)
        rc = fdcache_get(catalog_files(x->catalog), shard, &fd, err);
    if (rc != 0)
        return rc;
    _cleanup_(record_table_freep)
    struct record_table *t = record_table_new(
        s->name, c->spec->key_rule, c->spec->duplicated_records, (size_t)c->memory.scanning);
    rc = scan_members(x, s, fd, t, err);
    fdcache_put(catalog_files(x->catalog), shard);
    if (rc == 0)
        rc = catalog_put(x->catalog, shard, t, err);
    if (rc == 0)
        rc = add_rows(x, shard, t, err);
    if (rc == 0)
        progress_add(&c->progress.shards_done, 1);
    return rc;
}

int extract_run(struct sort_context *c, struct catalog *catalog, struct rowset *rows,
                struct error *err)
{
    struct extract x = {.c = c, .catalog = catalog, .rows = rows};
    pthread_mutex_init(&x.lock, NULL);
    int rc = c->env->pin_shards(c->env->ctx, c->spec, each_shard, &x, err);
    if (rc == 0) {
        catalog_sort(catalog);
        atomic_store(&c->progress.shards_total, catalog_count(catalog));
        rc = parallel_for("sort-extract", c->extract_threads, catalog_count(catalog), scan_shard,
                          &x, err);
    }
    atomic_store(&c->progress.spilled_bytes, rowset_spilled(rows));
    pthread_mutex_destroy(&x.lock);
    return rc;
}
