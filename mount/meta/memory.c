#include "mount/meta/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "mount/meta/kv.h"

struct row {
    size_t key_size, value_size;
    uint8_t *key, *value; /* one allocation each */
};

struct memory {
    struct meta meta;
    pthread_mutex_t lock;
    struct row *rows; /* in order of their keys */
    size_t count, room;
    uint64_t stamp; /* the last one that was given */
    int64_t clock_ms;
};

static struct memory *memory_of(struct meta *m)
{
    assert(m->ops == &meta_memory_ops);
    return (struct memory *)m;
}

/* ---- the table ---- */

static int compare(const struct row *row, struct kv_bytes key)
{
    size_t common = row->key_size < key.size ? row->key_size : key.size;
    int order = memcmp(row->key, key.data, common);
    return order != 0 ? order : (row->key_size > key.size) - (row->key_size < key.size);
}

/* The first row that is not less than key. */
static size_t find(const struct memory *m, struct kv_bytes key, bool *same)
{
    size_t from = 0, to = m->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (compare(&m->rows[middle], key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    *same = from < m->count && compare(&m->rows[from], key) == 0;
    return from;
}

static uint8_t *copy_of(struct kv_bytes b)
{
    uint8_t *copy = xmalloc(b.size + 1);
    memcpy(copy, b.data, b.size);
    return copy;
}

static int table_get(void *context, struct kv_bytes key, bool *found, struct kv_bytes *value,
                     struct error *err)
{
    struct memory *m = context;
    (void)err;
    size_t at = find(m, key, found);
    if (*found)
        *value = (struct kv_bytes){m->rows[at].value, m->rows[at].value_size};
    return 0;
}

static int table_next(void *context, struct kv_bytes key, bool *found, struct kv_bytes *next,
                      struct kv_bytes *value, struct error *err)
{
    struct memory *m = context;
    bool same;
    (void)err;
    size_t at = find(m, key, &same);
    at += same ? 1 : 0;
    *found = at < m->count;
    if (*found) {
        *next = (struct kv_bytes){m->rows[at].key, m->rows[at].key_size};
        *value = (struct kv_bytes){m->rows[at].value, m->rows[at].value_size};
    }
    return 0;
}

static int table_put(void *context, struct kv_bytes key, struct kv_bytes value, struct error *err)
{
    struct memory *m = context;
    bool same;
    (void)err;
    size_t at = find(m, key, &same);
    if (!same) {
        if (m->count == m->room) {
            m->room = m->room > 0 ? 2 * m->room : 64;
            m->rows = xrealloc(m->rows, m->room * sizeof *m->rows);
        }
        memmove(m->rows + at + 1, m->rows + at, (m->count - at) * sizeof *m->rows);
        m->rows[at] = (struct row){.key = copy_of(key), .key_size = key.size};
        m->count++;
    }
    free(m->rows[at].value);
    m->rows[at].value = copy_of(value);
    m->rows[at].value_size = value.size;
    return 0;
}

static int table_remove(void *context, struct kv_bytes key, struct error *err)
{
    struct memory *m = context;
    bool same;
    (void)err;
    size_t at = find(m, key, &same);
    if (!same)
        return 0;
    free(m->rows[at].key);
    free(m->rows[at].value);
    m->count--;
    memmove(m->rows + at, m->rows + at + 1, (m->count - at) * sizeof *m->rows);
    return 0;
}

static const struct kv_ops table_ops = {
    .get = table_get,
    .next = table_next,
    .put = table_put,
    .remove = table_remove,
};

/* ---- the calls ---- */

static int memory_open(const char *where, bool make, struct meta **out, struct error *err)
{
    (void)make; /* always a new one */
    if (where[0] != '\0')
        return error_set(err, E_INVALID, "memory://%s: nothing may follow memory://", where);
    struct memory *m = xcalloc(1, sizeof *m);
    m->meta.ops = &meta_memory_ops;
    pthread_mutex_init(&m->lock, NULL);
    *out = &m->meta;
    return 0;
}

static void memory_close(struct meta *meta)
{
    struct memory *m = memory_of(meta);
    for (size_t i = 0; i < m->count; i++) {
        free(m->rows[i].key);
        free(m->rows[i].value);
    }
    free(m->rows);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static int memory_read(struct meta *meta, struct meta_read *r, struct error *err)
{
    struct memory *m = memory_of(meta);
    struct kv kv = {&table_ops, m};
    pthread_mutex_lock(&m->lock);
    int rc = kv_read(&kv, r, err);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static int memory_commit(struct meta *meta, struct meta_commit *c, struct error *err)
{
    struct memory *m = memory_of(meta);
    struct kv kv = {&table_ops, m};
    pthread_mutex_lock(&m->lock);
    int rc = kv_commit(&kv, c, ++m->stamp, err);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static int memory_queue(struct meta *meta, struct arena *arena, struct meta_item *item,
                        uint64_t until, struct error *err)
{
    struct memory *m = memory_of(meta);
    struct kv kv = {&table_ops, m};
    pthread_mutex_lock(&m->lock);
    int rc = kv_queue(&kv, arena, item, until, err);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static int memory_snapshot(struct meta *meta, meta_visit *visit, void *context, struct error *err)
{
    struct memory *m = memory_of(meta);
    struct kv kv = {&table_ops, m};
    pthread_mutex_lock(&m->lock);
    int rc = kv_snapshot(&kv, visit, context, err);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static int memory_now(struct meta *meta, int64_t *unix_ms, struct error *err)
{
    struct memory *m = memory_of(meta);
    (void)err;
    pthread_mutex_lock(&m->lock);
    *unix_ms = m->clock_ms != 0 ? m->clock_ms : clock_wall_ms();
    pthread_mutex_unlock(&m->lock);
    return 0;
}

void meta_memory_set_clock(struct meta *meta, int64_t unix_ms)
{
    struct memory *m = memory_of(meta);
    pthread_mutex_lock(&m->lock);
    m->clock_ms = unix_ms;
    pthread_mutex_unlock(&m->lock);
}

void meta_memory_walk(struct meta *meta,
                      void (*each)(void *context, const struct meta_key *key,
                                   const struct meta_value *value),
                      void *context)
{
    struct memory *m = memory_of(meta);
    struct arena *arena = arena_new(4096);
    struct kv kv = {&table_ops, m};
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->count; i++) {
        struct meta_item item = {.ask = META_GET};
        struct meta_read r = {.arena = arena, .items = &item, .count = 1};
        bool known = meta_key_decode(m->rows[i].key, m->rows[i].key_size, &item.key);
        int rc = kv_read(&kv, &r, NULL);
        assert(known && rc == 0);
        each(context, &item.key, &item.value);
        arena_reset(arena);
    }
    pthread_mutex_unlock(&m->lock);
    arena_free(arena);
}

const struct meta_ops meta_memory_ops = {
    .scheme = "memory",
    .open = memory_open,
    .close = memory_close,
    .read = memory_read,
    .commit = memory_commit,
    .queue = memory_queue,
    .snapshot = memory_snapshot,
    .now = memory_now,
};
