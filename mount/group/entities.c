#include "mount/group/entities.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/mem.h"

#define SLOTS 4096

struct row {
    struct entity *entity;
    size_t slot;
    struct row *chain;         /* of the slot */
    struct row *newer, *older; /* by use */
};

struct group_entities {
    pthread_mutex_t lock;
    size_t most, count;
    struct row *slots[SLOTS];
    struct row *newest, *oldest;
};

struct group_entities *group_entities_new(size_t most)
{
    struct group_entities *t = xcalloc(1, sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    t->most = most;
    return t;
}

static bool is_same(const struct entity *a, const struct entity *b)
{
    return a->home == b->home && a->size == b->size && strcmp(a->key, b->key) == 0 &&
           strcmp(a->etag, b->etag) == 0 && strcmp(a->checksum, b->checksum) == 0;
}

static void unlink_use(struct group_entities *t, struct row *row)
{
    *(row->newer != NULL ? &row->newer->older : &t->newest) = row->older;
    *(row->older != NULL ? &row->older->newer : &t->oldest) = row->newer;
}

static void link_newest(struct group_entities *t, struct row *row)
{
    row->newer = NULL;
    row->older = t->newest;
    *(t->newest != NULL ? &t->newest->newer : &t->oldest) = row;
    t->newest = row;
}

static void drop(struct group_entities *t, struct row *row)
{
    struct row **at = &t->slots[row->slot];
    while (*at != row)
        at = &(*at)->chain;
    *at = row->chain;
    unlink_use(t, row);
    entity_unref(row->entity);
    free(row);
    t->count--;
}

void group_entities_free(struct group_entities *t)
{
    if (t == NULL)
        return;
    while (t->oldest != NULL)
        drop(t, t->oldest);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

struct entity *group_entities_take(struct group_entities *t, struct entity *e)
{
    size_t slot = XXH3_64bits_withSeed(e->key, strlen(e->key), (uintptr_t)e->home) % SLOTS;
    pthread_mutex_lock(&t->lock);
    struct row *row = t->slots[slot];
    while (row != NULL && !is_same(row->entity, e))
        row = row->chain;
    if (row != NULL) {
        unlink_use(t, row);
        entity_unref(e);
    } else {
        if (t->count == t->most)
            drop(t, t->oldest);
        row = xcalloc(1, sizeof *row);
        *row = (struct row){.entity = e, .slot = slot, .chain = t->slots[slot]};
        t->slots[slot] = row;
        t->count++;
    }
    link_newest(t, row);
    struct entity *found = entity_ref(row->entity);
    pthread_mutex_unlock(&t->lock);
    return found;
}
