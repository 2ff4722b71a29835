#include "sort/base/fdcache.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#include "common/mem.h"

#define NOBODY UINT32_MAX

struct entry {
    int fd; /* -1: not open */
    uint32_t users;
    uint32_t older, newer; /* in the list of open files that nobody uses */
};

struct fdcache {
    pthread_mutex_t lock;
    struct entry *entries;
    uint32_t files;
    uint32_t capacity;
    uint32_t open_count;
    uint32_t oldest, newest;
    int (*open)(void *ctx, uint32_t file, int *fd, struct error *err);
    void *ctx;
};

struct fdcache *fdcache_new(uint32_t files, uint32_t capacity,
                            int (*open)(void *ctx, uint32_t file, int *fd, struct error *err),
                            void *ctx)
{
    struct fdcache *c = xcalloc(1, sizeof *c);
    *c = (struct fdcache){
        .entries = xcalloc((size_t)files + 1, sizeof *c->entries),
        .files = files,
        .capacity = capacity,
        .oldest = NOBODY,
        .newest = NOBODY,
        .open = open,
        .ctx = ctx,
    };
    pthread_mutex_init(&c->lock, NULL);
    for (uint32_t i = 0; i < files; i++)
        c->entries[i].fd = -1;
    return c;
}

void fdcache_free(struct fdcache *c)
{
    if (c == NULL)
        return;
    for (uint32_t i = 0; i < c->files; i++) {
        assert(c->entries[i].users == 0);
        cleanup_close_(&c->entries[i].fd);
    }
    pthread_mutex_destroy(&c->lock);
    free(c->entries);
    free(c);
}

static void idle_remove(struct fdcache *c, uint32_t file)
{
    struct entry *e = &c->entries[file];
    if (e->older == NOBODY)
        c->oldest = e->newer;
    else
        c->entries[e->older].newer = e->newer;
    if (e->newer == NOBODY)
        c->newest = e->older;
    else
        c->entries[e->newer].older = e->older;
}

static void idle_append(struct fdcache *c, uint32_t file)
{
    struct entry *e = &c->entries[file];
    e->older = c->newest;
    e->newer = NOBODY;
    if (c->newest == NOBODY)
        c->oldest = file;
    else
        c->entries[c->newest].newer = file;
    c->newest = file;
}

/* A file to close, taken out of the cache, or -1. */
static int cache_shrink(struct fdcache *c)
{
    if (c->open_count <= c->capacity || c->oldest == NOBODY)
        return -1;
    uint32_t file = c->oldest;
    idle_remove(c, file);
    c->open_count--;
    return steal_fd(&c->entries[file].fd);
}

static bool cache_hit(struct fdcache *c, uint32_t file, int *fd)
{
    struct entry *e = &c->entries[file];
    if (e->fd < 0)
        return false;
    if (e->users++ == 0)
        idle_remove(c, file);
    *fd = e->fd;
    return true;
}

/* Two threads may have opened the same file at once: the second one's is closed again. */
static int cache_insert(struct fdcache *c, uint32_t file, int *fd)
{
    int mine = *fd;
    if (cache_hit(c, file, fd))
        return mine;
    c->entries[file].fd = mine;
    c->entries[file].users = 1;
    c->open_count++;
    return cache_shrink(c);
}

int fdcache_get(struct fdcache *c, uint32_t file, int *fd, struct error *err)
{
    assert(file < c->files);
    pthread_mutex_lock(&c->lock);
    bool hit = cache_hit(c, file, fd);
    pthread_mutex_unlock(&c->lock);
    if (hit)
        return 0;
    int rc = c->open(c->ctx, file, fd, err);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&c->lock);
    int surplus = cache_insert(c, file, fd);
    pthread_mutex_unlock(&c->lock);
    cleanup_close_(&surplus);
    return 0;
}

void fdcache_put(struct fdcache *c, uint32_t file)
{
    pthread_mutex_lock(&c->lock);
    assert(c->entries[file].users > 0);
    if (--c->entries[file].users == 0)
        idle_append(c, file);
    int surplus = cache_shrink(c);
    pthread_mutex_unlock(&c->lock);
    cleanup_close_(&surplus);
}
