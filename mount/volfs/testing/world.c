#include "mount/volfs/testing/world.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "mount/meta/memory.h"

static char cache_directory[] = "/tmp/dfc-volfs-test-XXXXXX";

/* ---- the store ---- */

static int put(void *context, const char *key, const void *data, size_t size)
{
    struct world *w = context;
    const struct timespec until = clock_after(PATIENCE_MS);
    pthread_mutex_lock(&w->lock);
    unsigned number = w->puts++;
    w->running++;
    w->most = w->running > w->most ? w->running : w->most;
    pthread_cond_broadcast(&w->news);
    while (w->most < w->together)
        if (pthread_cond_timedwait(&w->news, &w->lock, &until) != 0)
            break;
    w->running--;
    bool fails = number >= w->fail_from && number < w->fail_to;
    if (!fails) {
        struct object *o = &w->objects[w->count++];
        *o = (struct object){xstrdup(key), xmalloc(size), size};
        memcpy(o->data, data, size);
    }
    pthread_mutex_unlock(&w->lock);
    return fails ? w->put_error : 0;
}

static int removed(void *context, const char *key)
{
    (void)context;
    (void)key;
    return 0;
}

static int fetch(void *context, const struct entity *e, uint64_t offset, uint64_t length,
                 const struct dfc_sink *sink)
{
    struct world *w = context;
    const char *data = NULL;
    pthread_mutex_lock(&w->lock);
    w->fetched++;
    for (unsigned i = 0; i < w->count; i++) {
        if (strcmp(w->objects[i].key, e->key) == 0 && offset + length <= w->objects[i].size)
            data = w->objects[i].data + offset;
    }
    pthread_mutex_unlock(&w->lock);
    if (data == NULL)
        return -ESTALE;
    return sink->write(sink->context, data, length) == 0 ? 0 : -errno;
}

void fail_puts(struct world *w, unsigned from, unsigned to)
{
    pthread_mutex_lock(&w->lock);
    w->fail_from = from;
    w->fail_to = to;
    pthread_mutex_unlock(&w->lock);
}

/* ---- the engine ---- */

static int engine_read(struct meta *m, struct meta_read *r, struct error *err)
{
    struct meta *below = ((struct engine *)m)->below;
    return below->ops->read(below, r, err);
}

static int engine_commit(struct meta *m, struct meta_commit *c, struct error *err)
{
    struct engine *e = (struct engine *)m;
    bool fails = false;
    for (size_t i = 0; i < c->count; i++)
        fails |= c->steps[i].key.kind == META_CHUNK && atomic_load(&e->full);
    return fails ? error_set(err, E_NO_SPACE, "the disk is full")
                 : e->below->ops->commit(e->below, c, err);
}

static int engine_queue(struct meta *m, struct arena *arena, struct meta_item *item, uint64_t until,
                        struct error *err)
{
    struct meta *below = ((struct engine *)m)->below;
    return below->ops->queue(below, arena, item, until, err);
}

static int engine_now(struct meta *m, int64_t *unix_ms, struct error *err)
{
    struct meta *below = ((struct engine *)m)->below;
    return below->ops->now(below, unix_ms, err);
}

static const struct meta_ops engine_ops = {
    .read = engine_read, .commit = engine_commit, .queue = engine_queue, .now = engine_now};

static struct meta *engine_over(struct world *w, struct meta *below)
{
    w->engine = (struct engine){.meta.ops = &engine_ops, .below = below};
    return &w->engine.meta;
}

/* ---- a file ---- */

static void remove_cache(void)
{
    _cleanup_free_ char *command = xprintf("rm -rf %s", cache_directory);
    assert_int_equal(system(command), 0);
}

static int setup_with(void **state, bool cached)
{
    struct world *w = xcalloc(1, sizeof *w);
    w->cached = cached;
    w->put_error = -EIO;
    struct volume_format format;
    struct volume_env env;
    struct volume_inode made;
    struct error err = ERROR_INIT;
    const struct volume_new file = {.mode = S_IFREG | 0644};
    const struct volfs_options options = {
        .buffer_bytes = 32 << 20,
        .readahead_bytes = 8 << 20,
        .fetchers = 4,
        .write_bytes = 64 << 20,
        .uploads = UPLOADS,
        .flush_ms = 3600000,
        .clean_ms = 3600000,
        .ledger = -1,
        .cache = {.directories = cached ? mkdtemp(cache_directory) : NULL,
                  .bytes = 1 << 30,
                  .fill_bytes = 64 << 20,
                  .idle_ms = 3600000},
    };
    const struct volfs_store store = {
        .reads = {.context = w, .fetch = fetch}, .context = w, .put = put, .remove = removed};
    log_set_level(LOG_OFF);
    pthread_mutex_init(&w->lock, NULL);
    condition_init(&w->news);
    format_init(&format, "v", "dfc://v");
    format.block_bytes = BLOCK;
    format.chunk_bytes = 8 * BLOCK;
    volume_env_init(&env);
    if (meta_memory_ops.open("", true, &w->meta, &err) != 0 ||
        format_write(w->meta, &format, 0, 0, &err) != 0 ||
        volume_open(engine_over(w, w->meta), &env, &w->volume, &err) != 0 ||
        volfs_open(&options, w->volume, &store, &w->v, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(volume_create(w->volume, VOLUME_ROOT, "f", &file, &made), 0);
    w->ino = made.ino;
    *state = w;
    return 0;
}

int world_setup(void **state)
{
    return setup_with(state, false);
}

int world_setup_cached(void **state)
{
    memcpy(cache_directory + strlen(cache_directory) - 6, "XXXXXX", 6);
    return setup_with(state, true);
}

int world_teardown(void **state)
{
    struct world *w = *state;
    volfs_close(w->v);
    volume_close(w->volume);
    meta_close(w->meta);
    if (w->cached)
        remove_cache();
    for (unsigned i = 0; i < w->count; i++) {
        free(w->objects[i].key);
        free(w->objects[i].data);
    }
    pthread_cond_destroy(&w->news);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return 0;
}

struct volfs_file *open_file(struct world *w)
{
    struct volfs_file *f;
    assert_int_equal(volfs_openfile(w->v, w->ino, false, &f), 0);
    return f;
}

ssize_t write_at(struct volfs_file *f, int64_t at, const char *data, size_t size)
{
    const struct volfs_range r = {.offset = at, .size = size};
    return volfs_write(f, &r, data);
}

ssize_t read_at(struct volfs_file *f, int64_t at, char *to, size_t size)
{
    const struct volfs_range r = {.offset = at, .size = size};
    return volfs_read(f, &r, to);
}

char *random_data(size_t size, uint64_t seed)
{
    struct rng rng;
    char *data = xmalloc(size);
    rng_seed(&rng, seed);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)rng_next(&rng);
    return data;
}

void write_all(struct volfs_file *f, const char *data, size_t size)
{
    enum { REQUEST = 100000 };
    for (size_t at = 0; at < size; at += REQUEST) {
        size_t n = size - at < REQUEST ? size - at : REQUEST;
        assert_int_equal(write_at(f, (int64_t)at, data + at, n), n);
    }
}

void assert_bytes(struct volfs_file *f, const char *data, size_t size)
{
    enum { REQUEST = 130000 };
    _cleanup_free_ char *got = xmalloc(REQUEST);
    for (size_t at = 0; at < size; at += REQUEST) {
        size_t n = size - at < REQUEST ? size - at : REQUEST;
        assert_int_equal(read_at(f, (int64_t)at, got, REQUEST), n);
        assert_memory_equal(got, data + at, n);
    }
}
