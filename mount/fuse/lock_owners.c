#include "mount/fuse/lock_owners.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/mem.h"

struct pair {
    uint64_t file, owner;
};

struct lock_owners {
    pthread_mutex_t mutex;
    struct pair *pairs;
    size_t count, room;
};

struct lock_owners *lock_owners_new(void)
{
    struct lock_owners *o = xcalloc(1, sizeof *o);
    pthread_mutex_init(&o->mutex, NULL);
    return o;
}

void lock_owners_free(struct lock_owners *o)
{
    pthread_mutex_destroy(&o->mutex);
    free(o->pairs);
    free(o);
}

static struct pair *find(struct lock_owners *o, uint64_t file, uint64_t owner)
{
    for (size_t i = 0; i < o->count; i++) {
        if (o->pairs[i].file == file && o->pairs[i].owner == owner)
            return &o->pairs[i];
    }
    return NULL;
}

void lock_owners_add(struct lock_owners *o, uint64_t file, uint64_t owner)
{
    pthread_mutex_lock(&o->mutex);
    if (find(o, file, owner) == NULL) {
        if (o->count == o->room) {
            o->room = 2 * o->room + 16;
            o->pairs = xrealloc(o->pairs, o->room * sizeof *o->pairs);
        }
        o->pairs[o->count++] = (struct pair){file, owner};
    }
    pthread_mutex_unlock(&o->mutex);
}

void lock_owners_remove(struct lock_owners *o, uint64_t file, uint64_t owner)
{
    pthread_mutex_lock(&o->mutex);
    struct pair *p = find(o, file, owner);
    if (p != NULL)
        *p = o->pairs[--o->count];
    pthread_mutex_unlock(&o->mutex);
}

bool lock_owners_take(struct lock_owners *o, uint64_t file, uint64_t *owner)
{
    bool found = false;
    pthread_mutex_lock(&o->mutex);
    for (size_t i = 0; i < o->count && !found; i++) {
        if (o->pairs[i].file != file)
            continue;
        found = true;
        *owner = o->pairs[i].owner;
        o->pairs[i] = o->pairs[--o->count];
    }
    pthread_mutex_unlock(&o->mutex);
    return found;
}
