#include "mount/write/budget.h"

#include <assert.h>
#include <errno.h>

#include "common/clock.h"
#include "common/condition.h"

#define INTERRUPT_MS 50 /* how often a waiting thread looks */

void budget_init(struct budget *b, uint64_t limit_bytes)
{
    *b = (struct budget){.limit = limit_bytes};
    pthread_mutex_init(&b->lock, NULL);
    condition_init(&b->news);
}

void budget_done(struct budget *b)
{
    assert(b->used == 0);
    pthread_cond_destroy(&b->news);
    pthread_mutex_destroy(&b->lock);
}

int budget_take(struct budget *b, uint64_t bytes, const struct budget_wait *wait)
{
    int rc = 0;
    const uint64_t until_ms = clock_ms() + wait->wait_ms;
    pthread_mutex_lock(&b->lock);
    while (rc == 0 && (bytes > b->limit || b->used > b->limit - bytes)) {
        const struct timespec look = clock_after(INTERRUPT_MS);
        pthread_cond_timedwait(&b->news, &b->lock, &look);
        if (wait->interrupted != NULL && wait->interrupted(wait->context))
            rc = -EINTR;
        else if (clock_ms() >= until_ms)
            rc = -ENOBUFS;
    }
    if (rc == 0)
        b->used += bytes;
    pthread_mutex_unlock(&b->lock);
    return rc;
}

void budget_give(struct budget *b, uint64_t bytes)
{
    pthread_mutex_lock(&b->lock);
    assert(b->used >= bytes);
    b->used -= bytes;
    pthread_cond_broadcast(&b->news);
    pthread_mutex_unlock(&b->lock);
}
