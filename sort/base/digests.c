#include "sort/base/digests.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/mem.h"

struct digests {
    pthread_mutex_t lock;
    XXH128_hash_t *all;
    size_t count, cap;
    bool sorted;
};

struct digests *digests_new(void)
{
    struct digests *d = xcalloc(1, sizeof *d);
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

void digests_free(struct digests *d)
{
    if (d == NULL)
        return;
    pthread_mutex_destroy(&d->lock);
    free(d->all);
    free(d);
}

void digests_add(struct digests *d, XXH128_hash_t digest)
{
    pthread_mutex_lock(&d->lock);
    if (d->count == d->cap) {
        d->cap = d->cap == 0 ? 64 : 2 * d->cap;
        d->all = xrealloc(d->all, d->cap * sizeof *d->all);
    }
    d->all[d->count++] = digest;
    d->sorted = false;
    pthread_mutex_unlock(&d->lock);
}

/* XXH128_cmp takes what qsort gives. */
bool digests_have(struct digests *d, XXH128_hash_t digest)
{
    pthread_mutex_lock(&d->lock);
    if (!d->sorted && d->count > 1)
        qsort(d->all, d->count, sizeof *d->all, XXH128_cmp);
    d->sorted = true;
    bool found =
        d->count > 0 && bsearch(&digest, d->all, d->count, sizeof *d->all, XXH128_cmp) != NULL;
    pthread_mutex_unlock(&d->lock);
    return found;
}
