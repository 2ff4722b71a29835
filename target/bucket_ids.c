#include "target/bucket_ids.h"

#include <pthread.h>

#include "common/mem.h"

struct bucket_ids {
    pthread_rwlock_t lock;
    uint64_t *ids; /* sorted */
    size_t count;
};

struct bucket_ids *bucket_ids_new(void)
{
    struct bucket_ids *s = xcalloc(1, sizeof *s);
    pthread_rwlock_init(&s->lock, NULL);
    return s;
}

void bucket_ids_free(struct bucket_ids *s)
{
    if (s == NULL)
        return;
    pthread_rwlock_destroy(&s->lock);
    free(s->ids);
    free(s);
}

/* Where it is, or would be. */
static size_t place_of(const struct bucket_ids *s, uint64_t id)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has_at(const struct bucket_ids *s, size_t at, uint64_t id)
{
    return at < s->count && s->ids[at] == id;
}

bool bucket_ids_has(struct bucket_ids *s, uint64_t id)
{
    pthread_rwlock_rdlock(&s->lock);
    bool has = has_at(s, place_of(s, id), id);
    pthread_rwlock_unlock(&s->lock);
    return has;
}

void bucket_ids_add(struct bucket_ids *s, uint64_t id)
{
    pthread_rwlock_wrlock(&s->lock);
    size_t at = place_of(s, id);
    if (!has_at(s, at, id)) {
        s->ids = xrealloc(s->ids, (s->count + 1) * sizeof *s->ids);
        memmove(&s->ids[at + 1], &s->ids[at], (s->count - at) * sizeof *s->ids);
        s->ids[at] = id;
        s->count++;
    }
    pthread_rwlock_unlock(&s->lock);
}

void bucket_ids_remove(struct bucket_ids *s, uint64_t id)
{
    pthread_rwlock_wrlock(&s->lock);
    size_t at = place_of(s, id);
    if (has_at(s, at, id)) {
        s->count--;
        memmove(&s->ids[at], &s->ids[at + 1], (s->count - at) * sizeof *s->ids);
    }
    pthread_rwlock_unlock(&s->lock);
}
