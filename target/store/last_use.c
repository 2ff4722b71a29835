#include "target/store/last_use.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "hrw/hrw.h"
#include "target/store/object.h"

enum { SHARDS = 16, NOTES = 512 };

struct note {
    uint64_t bucket_id;
    char *name; /* NULL: free */
    int64_t used_s;
};

struct shard {
    pthread_mutex_t lock;
    struct note notes[NOTES];
};

struct last_use {
    struct object_store *store;
    struct shard shards[SHARDS];
};

struct last_use *last_use_new(struct object_store *store)
{
    struct last_use *a = xcalloc(1, sizeof *a);
    a->store = store;
    for (size_t i = 0; i < SHARDS; i++)
        pthread_mutex_init(&a->shards[i].lock, NULL);
    return a;
}

void last_use_free(struct last_use *a)
{
    if (a == NULL)
        return;
    for (size_t i = 0; i < SHARDS; i++) {
        for (size_t k = 0; k < NOTES; k++)
            free(a->shards[i].notes[k].name);
        pthread_mutex_destroy(&a->shards[i].lock);
    }
    free(a);
}

void last_use_note(struct last_use *a, uint64_t bucket_id, const char *name)
{
    uint64_t key = hrw_key(bucket_id, name, strlen(name));
    struct shard *s = &a->shards[key % SHARDS];
    struct note *n = &s->notes[key / SHARDS % NOTES];
    pthread_mutex_lock(&s->lock);
    if (n->name == NULL) {
        n->name = xstrdup(name);
        n->bucket_id = bucket_id;
    }
    if (n->bucket_id == bucket_id && strcmp(n->name, name) == 0)
        n->used_s = clock_wall_ms() / 1000;
    pthread_mutex_unlock(&s->lock);
}

/* The note is taken out, and written without the lock. */
static void write_note(struct last_use *a, struct shard *s, struct note *n)
{
    pthread_mutex_lock(&s->lock);
    const struct note taken = *n;
    *n = (struct note){0};
    pthread_mutex_unlock(&s->lock);
    if (taken.name != NULL)
        object_touch(a->store, taken.bucket_id, taken.name, taken.used_s);
    free(taken.name);
}

void last_use_write(struct last_use *a)
{
    for (size_t i = 0; i < SHARDS; i++) {
        for (size_t k = 0; k < NOTES; k++)
            write_note(a, &a->shards[i], &a->shards[i].notes[k]);
    }
}
