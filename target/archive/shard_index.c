#include "target/archive/shard_index.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "target/archive/member_table.h"
#include "target/store/name_table.h"

enum { SLOTS = 4096 };

struct waiter {
    shard_fn *fn;
    void *arg;
    struct waiter *next;
};

struct shard {
    struct name_entry entry; /* first; out of the table once it is dropped */
    char *name;
    struct version version;
    uint64_t size;
    atomic_uint refs;           /* the index's own while it is there, the maker's, and users' */
    struct member_table *table; /* NULL: it is being made */
    uint64_t bytes;             /* that count */
    struct waiter *waiters, **last_waiter;
    struct shard *newer, *older; /* of those that are ready, by their last use */
};

struct shard_index {
    pthread_mutex_t lock;
    uint64_t memory_max, memory;
    struct name_table shards;
    struct shard *newest, *oldest;
};

/* --- references ------------------------------------------------------------------------------- */

struct shard *shard_ref(struct shard *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void shard_unref(struct shard *s)
{
    if (s == NULL || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    assert(s->waiters == NULL);
    member_table_free(s->table);
    free(s->name);
    free(s);
}

bool shard_is(const struct shard *s, const struct shard_key *key)
{
    return s->entry.bucket_id == key->bucket_id && s->size == key->size &&
           version_compare(&s->version, &key->version) == 0 && strcmp(s->name, key->name) == 0;
}

const struct member_table *shard_members(const struct shard *s)
{
    return s->table;
}

/* --- by their last use; with the lock held ---------------------------------------------------- */

static void use_unlink(struct shard_index *x, struct shard *s)
{
    *(s->newer != NULL ? &s->newer->older : &x->newest) = s->older;
    *(s->older != NULL ? &s->older->newer : &x->oldest) = s->newer;
    s->newer = s->older = NULL;
}

static void use_link(struct shard_index *x, struct shard *s)
{
    s->older = x->newest;
    *(x->newest != NULL ? &x->newest->newer : &x->oldest) = s;
    x->newest = s;
}

/* The index's reference; not the last one where somebody uses it. */
static void drop(struct shard_index *x, struct shard *s)
{
    use_unlink(x, s);
    name_table_remove(&x->shards, &s->entry);
    x->memory -= s->bytes;
    shard_unref(s);
}

/* --- the index -------------------------------------------------------------------------------- */

struct shard_index *shard_index_new(uint64_t memory_max)
{
    struct shard_index *x = xcalloc(1, sizeof *x);
    pthread_mutex_init(&x->lock, NULL);
    x->memory_max = memory_max;
    name_table_init(&x->shards, SLOTS);
    return x;
}

void shard_index_free(struct shard_index *x)
{
    if (x == NULL)
        return;
    while (x->oldest != NULL)
        drop(x, x->oldest);
    assert(name_table_next(&x->shards, NULL) == NULL);
    name_table_done(&x->shards);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

static struct shard *find(const struct shard_index *x, const struct shard_key *key)
{
    struct name_entry *e = name_table_find(&x->shards, key->bucket_id, key->name);
    while (e != NULL && !shard_is((struct shard *)e, key))
        e = name_table_same(e);
    return (struct shard *)e;
}

/* Another version is of no use any more. */
static void drop_others(struct shard_index *x, const struct shard_key *key)
{
    struct name_entry *e = name_table_find(&x->shards, key->bucket_id, key->name), *next;
    for (; e != NULL; e = next) {
        next = name_table_same(e);
        if (((struct shard *)e)->table != NULL)
            drop(x, (struct shard *)e);
    }
}

static struct shard *add(struct shard_index *x, const struct shard_key *key)
{
    struct shard *s = xcalloc(1, sizeof *s);
    s->name = xstrdup(key->name);
    s->version = key->version;
    s->size = key->size;
    s->refs = 2; /* the index's and the maker's */
    s->last_waiter = &s->waiters;
    drop_others(x, key);
    name_table_add(&x->shards, &s->entry, key->bucket_id, s->name);
    return s;
}

static void wait_for(struct shard *s, shard_fn *fn, void *arg)
{
    struct waiter *w = xcalloc(1, sizeof *w);
    *w = (struct waiter){.fn = fn, .arg = arg};
    *s->last_waiter = w;
    s->last_waiter = &w->next;
}

enum shard_answer shard_index_get(struct shard_index *x, const struct shard_key *key, shard_fn *fn,
                                  void *arg, struct shard **out)
{
    enum shard_answer answer = SHARD_WAITS;
    pthread_mutex_lock(&x->lock);
    struct shard *s = find(x, key);
    if (s == NULL) {
        answer = SHARD_MINE;
        *out = s = add(x, key);
    } else if (s->table != NULL) {
        answer = SHARD_READY;
        *out = shard_ref(s);
        use_unlink(x, s);
        use_link(x, s);
    }
    if (answer != SHARD_READY)
        wait_for(s, fn, arg);
    pthread_mutex_unlock(&x->lock);
    return answer;
}

int shard_index_grow(struct shard_index *x, struct shard *s, uint64_t bytes, struct error *err)
{
    if (bytes > x->memory_max)
        return error_set(err, E_ARCHIVE_LIMIT,
                         "the index of its members needs more than shard_index_memory (%llu bytes)",
                         (unsigned long long)x->memory_max);
    int code = 0;
    pthread_mutex_lock(&x->lock);
    while (x->oldest != NULL && x->memory - s->bytes + bytes > x->memory_max)
        drop(x, x->oldest);
    if (x->memory - s->bytes + bytes > x->memory_max)
        code = error_set(err, E_OVERLOAD, "other archives take all of shard_index_memory just now");
    else
        x->memory += bytes - s->bytes, s->bytes = bytes;
    pthread_mutex_unlock(&x->lock);
    return code;
}

/* With the lock held: whoever comes from here on finds it, or has it made anew. */
static struct waiter *close_waiting(struct shard_index *x, struct shard *s,
                                    struct member_table *table)
{
    struct waiter *waiters = s->waiters;
    s->waiters = NULL;
    s->table = table;
    use_link(x, s);
    if (table == NULL)
        drop(x, s);
    return waiters;
}

void shard_index_made(struct shard_index *x, struct shard *s, struct member_table *table,
                      const struct error *err)
{
    pthread_mutex_lock(&x->lock);
    struct waiter *w = close_waiting(x, s, table), *next;
    pthread_mutex_unlock(&x->lock);
    for (; w != NULL; w = next) {
        next = w->next;
        w->fn(w->arg, s, table != NULL ? NULL : err);
        free(w);
    }
    shard_unref(s);
}

uint64_t shard_index_bytes(struct shard_index *x)
{
    pthread_mutex_lock(&x->lock);
    uint64_t bytes = x->memory;
    pthread_mutex_unlock(&x->lock);
    return bytes;
}
