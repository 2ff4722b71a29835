#include "target/store/renames.h"

#include <pthread.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/buf.h"
#include "common/mem.h"
#include "target/store/name_queue.h"

struct renames {
    struct name_queue *turns;
    pthread_mutex_t lock; /* of what follows */
    XXH128_hash_t kept[RENAMES_KEPT];
    size_t count, next;
};

struct renames *renames_new(struct pool *pool)
{
    struct renames *r = xcalloc(1, sizeof *r);
    r->turns = name_queue_new(pool, RENAMES_WAITING);
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void renames_free(struct renames *r)
{
    if (r == NULL)
        return;
    name_queue_free(r->turns);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

int renames_enter(struct renames *r, uint64_t bucket_id, const char *name, void (*fn)(void *arg),
                  void *arg, struct error *err)
{
    return name_queue_enter(r->turns, bucket_id, name, fn, arg, err);
}

bool renames_busy(struct renames *r, uint64_t bucket_id, const char *name)
{
    return name_queue_busy(r->turns, bucket_id, name);
}

/* No name and no id has a NUL. */
static XXH128_hash_t hash_of(const struct rename_request *q)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    buf_append(&text, q->id, strlen(q->id) + 1);
    buf_append(&text, q->name, strlen(q->name) + 1);
    buf_append(&text, q->new_name, strlen(q->new_name) + 1);
    return XXH3_128bits_withSeed(text.data, text.len, q->bucket_id);
}

void renames_note(struct renames *r, const struct rename_request *done)
{
    XXH128_hash_t hash = hash_of(done);
    pthread_mutex_lock(&r->lock);
    r->kept[r->next] = hash;
    r->next = (r->next + 1) % RENAMES_KEPT;
    if (r->count < RENAMES_KEPT)
        r->count++;
    pthread_mutex_unlock(&r->lock);
}

bool renames_knows(struct renames *r, const struct rename_request *again)
{
    XXH128_hash_t hash = hash_of(again);
    bool found = false;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->count && !found; i++)
        found = XXH128_isEqual(r->kept[i], hash);
    pthread_mutex_unlock(&r->lock);
    return found;
}
