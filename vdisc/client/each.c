#include "vdisc/client/each.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/mem.h"

struct each {
    int (*run)(void *context, uint32_t number, struct dfc_error *err);
    void *context;
    uint64_t count;
    _Atomic uint64_t next;
    atomic_bool failed;
    pthread_mutex_t lock; /* the failure of the lowest number */
    int rc;
    uint64_t failed_number;
    struct dfc_error err;
};

/* All lower numbers were begun before, and are brought to their end. */
static void note_failure(struct each *e, uint64_t number, int rc, const struct dfc_error *err)
{
    pthread_mutex_lock(&e->lock);
    if (e->rc == DFC_OK || number < e->failed_number) {
        e->rc = rc;
        e->failed_number = number;
        e->err = *err;
    }
    pthread_mutex_unlock(&e->lock);
    atomic_store(&e->failed, true);
}

static void *work(void *arg)
{
    struct each *e = arg;
    struct dfc_error err = {0};
    for (uint64_t i; !atomic_load(&e->failed) && (i = atomic_fetch_add(&e->next, 1)) < e->count;) {
        int rc = e->run(e->context, (uint32_t)i, &err);
        if (rc != DFC_OK)
            note_failure(e, i, rc, &err);
    }
    return NULL;
}

int each_number(uint32_t count, unsigned threads,
                int (*run)(void *context, uint32_t number, struct dfc_error *err), void *context,
                struct dfc_error *err)
{
    struct each e = {
        .run = run, .context = context, .count = count, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t *others = xcalloc(threads, sizeof *others);
    unsigned started = 0;
    while (started + 1 < threads && started + 1 < count &&
           pthread_create(&others[started], NULL, work, &e) == 0)
        started++; /* with fewer threads it takes longer */
    work(&e);
    for (unsigned i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    free(others);
    if (e.rc != DFC_OK && err != NULL)
        *err = e.err;
    return e.rc;
}
