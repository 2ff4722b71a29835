#include "target/archive/archives.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "io/pool.h"
#include "io/reader.h"
#include "target/archive/archive_source.h"
#include "target/archive/member_scan.h"
#include "target/archive/member_table.h"
#include "target/node/target.h"
#include "target/slices/ec.h"

enum { SHARE = 4 }; /* one of so many threads may make an index */

/* An index that is being made, or waits for its turn. */
struct making {
    struct archives *archives;
    struct shard *shard;
    uint64_t bucket_id;
    struct object object;
    struct reader *reader; /* of its disk */
    struct member_table *table;
    size_t asked_bytes; /* of the table, when the index was asked for them */
    struct making *next;
};

struct archives {
    struct target *target;
    struct shard_index *index;
    metric_t *made, *failed;
    atomic_bool stops;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t ended;
    struct making *running, *waiting; /* the latter in the order in which they came */
};

struct archives *archives_new(struct target *t)
{
    struct archives *a = xcalloc(1, sizeof *a);
    a->target = t;
    a->index = shard_index_new(t->params.shard_index_memory);
    a->made = metric_get(M_archive_index_total, "outcome=\"made\"");
    a->failed = metric_get(M_archive_index_total, "outcome=\"failed\"");
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->ended, NULL);
    return a;
}

void archives_stop(struct archives *a)
{
    if (a != NULL)
        atomic_store(&a->stops, true);
}

void archives_free(struct archives *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    while (a->running != NULL)
        pthread_cond_wait(&a->ended, &a->lock);
    pthread_mutex_unlock(&a->lock);
    assert(a->waiting == NULL);
    shard_index_free(a->index);
    pthread_cond_destroy(&a->ended);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

/* --- one -------------------------------------------------------------------------------------- */

static bool is_in_slices(const struct making *m)
{
    return m->object.attr.slices != NULL;
}

/* May the index have what its table takes by now? */
static int go_on(void *ctx, struct error *err)
{
    struct making *m = ctx;
    const size_t bytes = member_table_bytes(m->table);
    if (atomic_load(&m->archives->stops))
        return error_set(err, E_NOT_READY, "the target stops");
    if (bytes == m->asked_bytes)
        return 0;
    m->asked_bytes = bytes;
    return shard_index_grow(m->archives->index, m->shard, bytes, err);
}

/* Closes what it had; the memory is the caller's. */
static void end(struct making *m, const struct error *err)
{
    metric_add(err->code == 0 ? m->archives->made : m->archives->failed, 1);
    close(m->object.fd);
    reader_unref(m->reader);
    if (err->code != 0)
        member_table_free(steal(m->table));
    shard_index_made(m->archives->index, m->shard, m->table, err);
}

static void make(struct making *m)
{
    struct error err = ERROR_INIT;
    struct archive_source source = {.target = m->archives->target,
                                    .bucket_id = m->bucket_id,
                                    .object = &m->object,
                                    .reader = m->reader,
                                    .go_on = go_on,
                                    .ctx = m};
    m->table = member_table_new();
    if (archive_source_open(&source, &err) == 0)
        (void)member_scan(&source, m->table, &err); /* what it said is in err */
    archive_source_close(&source);
    end(m, &err);
}

/* --- many ------------------------------------------------------------------------------------- */

/* Objects in slices share their threads, whatever the disk of the manifest. */
static bool share_threads(const struct making *a, const struct making *b)
{
    return is_in_slices(a) == is_in_slices(b) && (is_in_slices(a) || a->reader == b->reader);
}

/* With the lock held. */
static bool has_room(const struct archives *a, const struct making *m)
{
    const struct target_params *p = &a->target->params;
    uint64_t threads = is_in_slices(m) ? p->slices_readers : p->disk_readers;
    uint64_t running = 0;
    for (const struct making *r = a->running; r != NULL; r = r->next)
        running += share_threads(r, m);
    return running == 0 || running < threads / SHARE;
}

/* With the lock held: out of the queue, and linked as running; NULL: nothing has room. */
static struct making *take_waiting(struct archives *a)
{
    struct making **at = &a->waiting, *m;
    while ((m = *at) != NULL && !has_room(a, m))
        at = &m->next;
    if (m == NULL)
        return NULL;
    *at = m->next;
    m->next = a->running;
    a->running = m;
    return m;
}

/* Frees it, and gives its place to the next one.  Without a next one `a` may be gone. */
static struct making *over(struct archives *a, struct making *m)
{
    pthread_mutex_lock(&a->lock);
    struct making **at = &a->running;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    struct making *next = take_waiting(a);
    pthread_cond_broadcast(&a->ended);
    pthread_mutex_unlock(&a->lock);
    free(m);
    return next;
}

static void submit(struct archives *a, struct making *m);

static void make_in_thread(void *arg)
{
    struct making *m = arg;
    struct archives *a = m->archives;
    make(m);
    submit(a, over(a, m));
}

/* It is linked as running; NULL is fine. */
static void submit(struct archives *a, struct making *m)
{
    while (m != NULL) {
        struct error err = ERROR_INIT;
        int code = is_in_slices(m) ? pool_submit(a->target->ec->readers, make_in_thread, m, &err)
                                   : reader_submit(m->reader, make_in_thread, m, &err);
        if (code == 0)
            return;
        end(m, &err);
        m = over(a, m);
    }
}

static void enqueue(struct archives *a, struct making *m)
{
    pthread_mutex_lock(&a->lock);
    struct making **at = &a->waiting;
    while (*at != NULL)
        at = &(*at)->next;
    *at = m;
    struct making *next = take_waiting(a);
    pthread_mutex_unlock(&a->lock);
    submit(a, next);
}

bool archives_find(struct archives *a, uint64_t bucket_id, const struct object *o,
                   struct reader *reader, shard_fn *fn, void *arg, struct shard **out)
{
    const struct shard_key key = {.bucket_id = bucket_id,
                                  .name = o->attr.name,
                                  .version = o->attr.version,
                                  .size = o->attr.size};
    struct shard *shard = NULL;
    switch (shard_index_get(a->index, &key, fn, arg, &shard)) {
    case SHARD_READY:
        *out = shard;
        return true;
    case SHARD_WAITS:
        close(o->fd);
        return false;
    case SHARD_MINE:
        break;
    }
    struct making *m = xcalloc(1, sizeof *m);
    *m = (struct making){
        .archives = a, .shard = shard, .bucket_id = bucket_id, .reader = reader_ref(reader)};
    object_clone(o, &m->object);
    m->object.fd = o->fd;
    enqueue(a, m);
    return false;
}
