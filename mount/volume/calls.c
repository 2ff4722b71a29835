#include "mount/volume/calls.h"

#include <stddef.h>
#include <sys/mman.h>

struct volume_memory *volume_memory_new(void)
{
    void *memory = mmap(NULL, sizeof(struct volume_memory), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

void volume_memory_free(struct volume_memory *m)
{
    if (m != NULL)
        munmap(m, sizeof *m);
}

/* ---- slots ---- */

/* The one of the id, or with id 0 a free one. */
static struct call *find(struct volume_memory *m, uint64_t id, uint64_t hint)
{
    for (uint64_t i = 0; i < CALLS_MOST; i++) {
        struct call *c = &m->calls[(hint + i) % CALLS_MOST];
        if (atomic_load(&c->id) == id)
            return c;
    }
    return NULL;
}

struct call *calls_take(struct volume_memory *m, uint64_t id)
{
    struct call *c = find(m, id, id);
    while (c == NULL) {
        uint64_t none = 0;
        c = find(m, 0, id);
        if (c == NULL || atomic_compare_exchange_strong(&c->id, &none, id))
            return c; /* calls_give() has left it as one that has begun */
        c = NULL;
    }
    return c;
}

void calls_give(struct call *c)
{
    if (c == NULL)
        return;
    atomic_store(&c->state, CALL_BEGUN);
    atomic_store(&c->id, 0);
}

bool calls_is_made(const struct call *c)
{
    return c != NULL && atomic_load(&c->state) == CALL_MADE;
}

/* ---- the thread's ---- */

static _Thread_local struct call *current;

void calls_set_current(struct call *c)
{
    current = c;
}

struct call *calls_current(void)
{
    return current;
}

/* ---- commits ---- */

void calls_sent(struct call *c, uint32_t lane, int64_t number)
{
    if (c == NULL || calls_is_made(c))
        return;
    c->lane = lane;
    c->number = number;
    c->age = 0;
    atomic_store(&c->state, CALL_SENT);
}

void calls_ended(struct call *c, bool made)
{
    if (c != NULL && atomic_load(&c->state) == CALL_SENT)
        atomic_store(&c->state, made ? CALL_MADE : CALL_BEGUN);
}

/* ---- takeover ---- */

void calls_judge(struct volume_memory *m, uint32_t lane, int64_t number)
{
    for (unsigned i = 0; i < CALLS_MOST; i++) {
        struct call *c = &m->calls[i];
        if (atomic_load(&c->id) != 0 && atomic_load(&c->state) == CALL_SENT && c->lane == lane &&
            c->number == number)
            atomic_store(&c->state, CALL_MADE);
    }
}

/* A call that was made and answered never comes again: it is forgotten in time.
 */
void calls_settle(struct volume_memory *m)
{
    for (unsigned i = 0; i < CALLS_MOST; i++) {
        struct call *c = &m->calls[i];
        if (!calls_is_made(c) || c->age++ >= CALLS_AGE_MOST)
            calls_give(c);
    }
}
