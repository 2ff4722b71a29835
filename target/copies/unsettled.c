#include "target/copies/unsettled.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/mem.h"
#include "hrw/hrw.h"

enum { SLOTS = 4096, STRIPES = 64 };

struct mark {
    struct mark *next;
    uint64_t bucket_id;
    struct version version;
    uint64_t since_ms; /* marked, or looked at */
    char name[];
};

struct unsettled {
    atomic_size_t count;
    atomic_size_t next_slot; /* where unsettled_due() goes on */
    pthread_mutex_t stripes[STRIPES];
    struct mark *slots[SLOTS];
};

struct unsettled *unsettled_new(void)
{
    struct unsettled *u = xcalloc(1, sizeof *u);
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_init(&u->stripes[i], NULL);
    return u;
}

void unsettled_free(struct unsettled *u)
{
    if (u == NULL)
        return;
    for (size_t i = 0; i < SLOTS; i++) {
        for (struct mark *m = u->slots[i], *next; m != NULL; m = next) {
            next = m->next;
            free(m);
        }
    }
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_destroy(&u->stripes[i]);
    free(u);
}

static pthread_mutex_t *stripe(struct unsettled *u, size_t slot)
{
    return &u->stripes[slot % STRIPES];
}

static size_t slot_of(uint64_t bucket_id, const char *name)
{
    return hrw_key(bucket_id, name, strlen(name)) % SLOTS;
}

static struct mark **find(struct unsettled *u, size_t slot, uint64_t bucket_id, const char *name)
{
    struct mark **at = &u->slots[slot];
    while (*at != NULL && ((*at)->bucket_id != bucket_id || strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    return at;
}

static struct mark *mark_new(uint64_t bucket_id, const char *name, const struct version *v,
                             uint64_t now_ms)
{
    size_t len = strlen(name);
    struct mark *m = xcalloc(1, sizeof *m + len + 1);
    m->bucket_id = bucket_id;
    m->version = *v;
    m->since_ms = now_ms;
    memcpy(m->name, name, len + 1);
    return m;
}

void unsettled_mark(struct unsettled *u, uint64_t bucket_id, const char *name,
                    const struct version *v, uint64_t now_ms)
{
    size_t slot = slot_of(bucket_id, name);
    pthread_mutex_lock(stripe(u, slot));
    struct mark **at = find(u, slot, bucket_id, name);
    if (*at == NULL) {
        *at = mark_new(bucket_id, name, v, now_ms);
        atomic_fetch_add(&u->count, 1);
    } else if (version_compare(v, &(*at)->version) > 0) {
        (*at)->version = *v;
    }
    pthread_mutex_unlock(stripe(u, slot));
}

bool unsettled_upto(struct unsettled *u, uint64_t bucket_id, const char *name, struct version *out)
{
    *out = (struct version){0};
    if (atomic_load(&u->count) == 0)
        return false;
    size_t slot = slot_of(bucket_id, name);
    pthread_mutex_lock(stripe(u, slot));
    const struct mark *m = *find(u, slot, bucket_id, name);
    if (m != NULL)
        *out = m->version;
    pthread_mutex_unlock(stripe(u, slot));
    return m != NULL;
}

bool unsettled_has(struct unsettled *u, uint64_t bucket_id, const char *name)
{
    struct version upto;
    return unsettled_upto(u, bucket_id, name, &upto);
}

static void remove_at(struct unsettled *u, struct mark **at)
{
    struct mark *m = *at;
    *at = m->next;
    free(m);
    atomic_fetch_sub(&u->count, 1);
}

void unsettled_settle(struct unsettled *u, uint64_t bucket_id, const char *name,
                      const struct version *v)
{
    size_t slot = slot_of(bucket_id, name);
    pthread_mutex_lock(stripe(u, slot));
    struct mark **at = find(u, slot, bucket_id, name);
    if (*at != NULL && version_compare(&(*at)->version, v) <= 0)
        remove_at(u, at);
    pthread_mutex_unlock(stripe(u, slot));
}

size_t unsettled_count(struct unsettled *u)
{
    return atomic_load(&u->count);
}

static size_t due_of_slot(struct unsettled *u, size_t slot, uint64_t before_ms, uint64_t now_ms,
                          struct unsettled_name *out, size_t most)
{
    size_t count = 0;
    pthread_mutex_lock(stripe(u, slot));
    for (struct mark *m = u->slots[slot]; m != NULL && count < most; m = m->next) {
        if (m->since_ms > before_ms)
            continue;
        m->since_ms = now_ms;
        out[count++] = (struct unsettled_name){
            .bucket_id = m->bucket_id, .version = m->version, .name = xstrdup(m->name)};
    }
    pthread_mutex_unlock(stripe(u, slot));
    return count;
}

size_t unsettled_due(struct unsettled *u, uint64_t before_ms, uint64_t now_ms,
                     struct unsettled_name *out, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < SLOTS && count < most && atomic_load(&u->count) > 0; i++) {
        size_t slot = atomic_fetch_add(&u->next_slot, 1) % SLOTS;
        count += due_of_slot(u, slot, before_ms, now_ms, out + count, most - count);
    }
    return count;
}
