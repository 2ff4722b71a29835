#include "target/copies/dirty.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/mem.h"
#include "target/store/name_table.h"

enum { SLOTS = 4096, STRIPES = 64 };

struct mark {
    struct name_entry entry;
    struct version version;
    uint64_t since_ms; /* marked, or looked at */
    char name[];
};

struct dirty {
    atomic_size_t count;
    atomic_size_t next_slot; /* where dirty_due() goes on */
    pthread_mutex_t stripes[STRIPES];
    struct name_table marks; /* of a slot: under its stripe */
};

struct dirty *dirty_new(void)
{
    struct dirty *u = xcalloc(1, sizeof *u);
    name_table_init(&u->marks, SLOTS);
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_init(&u->stripes[i], NULL);
    return u;
}

void dirty_free(struct dirty *u)
{
    if (u == NULL)
        return;
    for (struct name_entry *e = name_table_next(&u->marks, NULL), *next; e != NULL; e = next) {
        next = name_table_next(&u->marks, e);
        free(e);
    }
    name_table_done(&u->marks);
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_destroy(&u->stripes[i]);
    free(u);
}

static pthread_mutex_t *stripe(struct dirty *u, size_t slot)
{
    return &u->stripes[slot % STRIPES];
}

static size_t slot_of(const struct dirty *u, uint64_t bucket_id, const char *name)
{
    return name_table_slot(&u->marks, bucket_id, name);
}

static struct mark *find(const struct dirty *u, uint64_t bucket_id, const char *name)
{
    return (struct mark *)name_table_find(&u->marks, bucket_id, name);
}

static struct mark *mark_new(const char *name, const struct version *v, uint64_t now_ms)
{
    size_t len = strlen(name);
    struct mark *m = xcalloc(1, sizeof *m + len + 1);
    m->version = *v;
    m->since_ms = now_ms;
    memcpy(m->name, name, len + 1);
    return m;
}

void dirty_mark(struct dirty *u, uint64_t bucket_id, const char *name, const struct version *v,
                uint64_t now_ms)
{
    size_t slot = slot_of(u, bucket_id, name);
    pthread_mutex_lock(stripe(u, slot));
    struct mark *m = find(u, bucket_id, name);
    if (m == NULL) {
        m = mark_new(name, v, now_ms);
        name_table_add(&u->marks, &m->entry, bucket_id, m->name);
        atomic_fetch_add(&u->count, 1);
    } else if (version_compare(v, &m->version) > 0) {
        m->version = *v;
    }
    pthread_mutex_unlock(stripe(u, slot));
}

bool dirty_upto(struct dirty *u, uint64_t bucket_id, const char *name, struct version *out)
{
    *out = (struct version){0};
    if (atomic_load(&u->count) == 0)
        return false;
    size_t slot = slot_of(u, bucket_id, name);
    pthread_mutex_lock(stripe(u, slot));
    const struct mark *m = find(u, bucket_id, name);
    if (m != NULL)
        *out = m->version;
    pthread_mutex_unlock(stripe(u, slot));
    return m != NULL;
}

bool dirty_has(struct dirty *u, uint64_t bucket_id, const char *name)
{
    struct version upto;
    return dirty_upto(u, bucket_id, name, &upto);
}

static void remove_mark(struct dirty *u, struct mark *m)
{
    name_table_remove(&u->marks, &m->entry);
    free(m);
    atomic_fetch_sub(&u->count, 1);
}

void dirty_clear(struct dirty *u, uint64_t bucket_id, const char *name, const struct version *v)
{
    size_t slot = slot_of(u, bucket_id, name);
    pthread_mutex_lock(stripe(u, slot));
    struct mark *m = find(u, bucket_id, name);
    if (m != NULL && version_compare(&m->version, v) <= 0)
        remove_mark(u, m);
    pthread_mutex_unlock(stripe(u, slot));
}

size_t dirty_count(struct dirty *u)
{
    return atomic_load(&u->count);
}

static size_t due_of_slot(struct dirty *u, size_t slot, uint64_t before_ms, uint64_t now_ms,
                          struct dirty_name *out, size_t most)
{
    size_t count = 0;
    pthread_mutex_lock(stripe(u, slot));
    for (struct name_entry *e = u->marks.first[slot]; e != NULL && count < most; e = e->next) {
        struct mark *m = (struct mark *)e;
        if (m->since_ms > before_ms)
            continue;
        m->since_ms = now_ms;
        out[count++] = (struct dirty_name){
            .bucket_id = e->bucket_id, .version = m->version, .name = xstrdup(m->name)};
    }
    pthread_mutex_unlock(stripe(u, slot));
    return count;
}

size_t dirty_due(struct dirty *u, uint64_t before_ms, uint64_t now_ms, struct dirty_name *out,
                 size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < SLOTS && count < most && atomic_load(&u->count) > 0; i++) {
        size_t slot = atomic_fetch_add(&u->next_slot, 1) % SLOTS;
        count += due_of_slot(u, slot, before_ms, now_ms, out + count, most - count);
    }
    return count;
}
