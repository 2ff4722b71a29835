/* The happy path of a read:
 *
 *     buffer_read -> request: blocks that are missing become a fetch      (queue)
 *                 -> waits for each block in turn, and copies it
 *     fetcher     -> store->fetch() writes into the blocks, each is READY when it is full
 *
 * A short read at a random place: store->near(), in the reader's thread; if it has the bytes, that
 * is all.
 *
 * A reader holds one block at a time and waits for room holding none, so readers never wait for
 * each other in a circle.  A failed fetch takes its blocks out of the table: its readers get the
 * error, the next reader fetches again. */
#include "mount/data/buffer.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "mount/data/blocks.h"
#include "mount/data/touched.h"

#define FETCH_BLOCKS 8         /* of one request, which ends where a multiple of them does */
#define INTERRUPT_MS 50        /* how often a waiting reader looks */
#define COPY_LOCKED (4u << 10) /* bytes */

struct fetch {
    struct fetch *next;
    struct entity *entity;
    uint64_t offset, length;
    unsigned count;
    struct block *blocks[FETCH_BLOCKS];
    /* While it runs, of its fetcher alone: */
    struct buffer *buffer;
    uint64_t done;
    unsigned ready; /* blocks */
    bool whole;
};

struct queue {
    struct fetch *first, **last;
};

struct buffer {
    struct data_store store;
    metric_t *read; /* bytes that readers got */
    unsigned fetchers;
    pthread_t *threads;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t work;  /* for fetchers */
    pthread_cond_t news;  /* for readers: a block is ready or failed, or room was made */
    struct blocks blocks;
    struct touched touched;     /* by reads that near() may serve */
    struct queue wanted, ahead; /* a reader waits; none does */
    unsigned readers;
    bool stop;
};

static void queue_init(struct queue *q)
{
    q->first = NULL;
    q->last = &q->first;
}

static void queue_push(struct queue *q, struct fetch *f)
{
    *q->last = f;
    q->last = &f->next;
}

static struct fetch *queue_pop(struct queue *q)
{
    struct fetch *f = q->first;
    if (f == NULL)
        return NULL;
    q->first = f->next;
    if (q->first == NULL)
        q->last = &q->first;
    return f;
}

/* ---- fetchers ---- */

/* Blocks of f that are full are shown to readers. */
static void fetch_show(struct fetch *f)
{
    struct buffer *b = f->buffer;
    pthread_mutex_lock(&b->lock);
    while (f->ready < f->count &&
           f->done >= (uint64_t)f->ready * ENTITY_BLOCK + f->blocks[f->ready]->size)
        f->blocks[f->ready++]->state = BLOCK_READY;
    pthread_cond_broadcast(&b->news);
    pthread_mutex_unlock(&b->lock);
}

static int fetch_write(void *context, const void *data, size_t size)
{
    struct fetch *f = context;
    const char *from = data;
    if (size > f->length - f->done) {
        errno = EIO; /* more than was asked for */
        return -1;
    }
    while (size > 0) {
        struct block *block = f->blocks[f->done / ENTITY_BLOCK];
        size_t at = f->done % ENTITY_BLOCK;
        size_t n = block->size - at < size ? block->size - at : size;
        memcpy(block->data + at, from, n);
        f->done += n;
        from += n;
        size -= n;
        if (at + n == block->size && !f->whole)
            fetch_show(f);
    }
    return 0;
}

static int fetch_rewind(void *context)
{
    struct fetch *f = context;
    f->done = 0;
    return 0;
}

static void fetch_end(struct fetch *f, int rc)
{
    struct buffer *b = f->buffer;
    if (rc == 0)
        fetch_show(f);
    pthread_mutex_lock(&b->lock);
    for (unsigned i = 0; i < f->count; i++) {
        if (i >= f->ready)
            blocks_fail(&b->blocks, f->blocks[i], rc != 0 ? rc : -EIO);
        blocks_release(&b->blocks, f->blocks[i]);
    }
    pthread_cond_broadcast(&b->news);
    pthread_mutex_unlock(&b->lock);
    entity_unref(f->entity);
    free(f);
}

static void fetch_run(struct fetch *f)
{
    f->whole = f->offset == 0 && f->length == f->entity->size;
    const struct dfc_sink sink = {
        .write = fetch_write,
        .rewind = f->whole ? fetch_rewind : NULL,
        .context = f,
    };
    const struct data_store *store = &f->buffer->store;
    fetch_end(f, store->fetch(store->context, f->entity, f->offset, f->length, &sink));
}

static void *fetcher(void *context)
{
    struct buffer *b = context;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        struct fetch *f = queue_pop(&b->wanted);
        if (f == NULL)
            f = queue_pop(&b->ahead);
        if (f == NULL && b->stop)
            break;
        if (f == NULL) {
            pthread_cond_wait(&b->work, &b->lock);
            continue;
        }
        pthread_mutex_unlock(&b->lock);
        fetch_run(f);
        pthread_mutex_lock(&b->lock);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* ---- what is missing is asked for ---- */

/* Up to one fetch, from block `index`, which is missing; the number of its blocks. */
static unsigned request_one(struct buffer *b, struct entity *e, uint64_t index, uint64_t end,
                            struct queue *queue)
{
    struct fetch *f = xcalloc(1, sizeof *f);
    while (index + f->count < end && (f->count == 0 || (index + f->count) % FETCH_BLOCKS != 0) &&
           blocks_find(&b->blocks, e, index + f->count) == NULL) {
        struct block *block = blocks_add(&b->blocks, e, index + f->count);
        if (block == NULL)
            break;
        f->blocks[f->count++] = block;
        f->length += block->size;
    }
    unsigned count = f->count;
    if (count == 0) {
        free(f);
        return 0;
    }
    f->buffer = b;
    f->entity = entity_ref(e);
    f->offset = index * ENTITY_BLOCK;
    queue_push(queue, f);
    pthread_cond_signal(&b->work);
    return count;
}

/* As far as there is room. */
static void request(struct buffer *b, struct entity *e, struct span s, struct queue *queue)
{
    uint64_t end = s.from < s.to ? (s.to + ENTITY_BLOCK - 1) / ENTITY_BLOCK : 0;
    for (uint64_t index = s.from / ENTITY_BLOCK; index < end;) {
        if (blocks_find(&b->blocks, e, index) != NULL) {
            index++;
            continue;
        }
        unsigned count = request_one(b, e, index, end, queue);
        if (count == 0)
            return;
        index += count;
    }
}

/* ---- readers ---- */

static bool reader_waits(struct buffer *b, const struct buffer_read *r)
{
    if (r->interrupted == NULL) {
        pthread_cond_wait(&b->news, &b->lock);
        return true;
    }
    const struct timespec until = clock_after(INTERRUPT_MS);
    pthread_cond_timedwait(&b->news, &b->lock, &until);
    return !r->interrupted(r->context);
}

/* The block, with a use of it: 0 or -EINTR. */
static int reader_take(struct buffer *b, const struct buffer_read *r, uint64_t index,
                       struct block **block)
{
    for (;;) {
        *block = blocks_find(&b->blocks, r->entity, index);
        if (*block != NULL)
            break;
        struct span rest = {index * ENTITY_BLOCK, r->offset + r->size};
        request(b, r->entity, rest, &b->wanted);
        if (blocks_find(&b->blocks, r->entity, index) == NULL && !reader_waits(b, r))
            return -EINTR; /* there is no room */
    }
    blocks_use(&b->blocks, *block);
    while ((*block)->state == BLOCK_FETCHING) {
        if (!reader_waits(b, r))
            return -EINTR;
    }
    return 0;
}

/* With the lock held, and a use of the block.  A few bytes are copied sooner than the lock is taken
 * again. */
static void copy_out(struct buffer *b, char *to, const char *from, size_t n)
{
    const bool few = n <= COPY_LOCKED;
    if (!few)
        pthread_mutex_unlock(&b->lock);
    memcpy(to, from, n);
    if (!few)
        pthread_mutex_lock(&b->lock);
}

static int reader_copy(struct buffer *b, const struct buffer_read *r, uint64_t at, char *to,
                       size_t *copied)
{
    struct block *block = NULL;
    size_t skip = at % ENTITY_BLOCK;
    int rc = reader_take(b, r, at / ENTITY_BLOCK, &block);
    if (rc == 0 && block->state == BLOCK_FAILED)
        rc = block->error;
    if (rc == 0) {
        size_t n = block->size - skip, left = (size_t)(r->offset + r->size - at);
        *copied = n < left ? n : left;
        copy_out(b, to, block->data + skip, *copied);
    }
    if (block != NULL && blocks_release(&b->blocks, block))
        pthread_cond_broadcast(&b->news);
    return rc;
}

void buffer_request(struct buffer *b, struct entity *e, struct span wanted, struct span ahead)
{
    assert(wanted.to <= e->size && ahead.to <= e->size);
    pthread_mutex_lock(&b->lock);
    request(b, e, wanted, &b->wanted);
    request(b, e, ahead, &b->ahead);
    pthread_mutex_unlock(&b->lock);
}

/* The lock is held, but while the store is asked. */
static bool read_near(struct buffer *b, const struct buffer_read *r, void *to)
{
    const uint64_t index = r->offset / ENTITY_BLOCK;
    if (b->store.near == NULL || !r->lone || r->size == 0 || r->size > NEAR_MOST ||
        r->ahead.from < r->ahead.to || (r->offset + r->size - 1) / ENTITY_BLOCK != index ||
        blocks_find(&b->blocks, r->entity, index) != NULL ||
        touched_again(&b->touched, r->entity, index))
        return false;
    pthread_mutex_unlock(&b->lock);
    bool is_near = b->store.near(b->store.context, r->entity, r->offset, r->size, to);
    pthread_mutex_lock(&b->lock);
    return is_near;
}

int buffer_read(struct buffer *b, const struct buffer_read *r, void *to)
{
    size_t done = 0, copied;
    int rc = 0;
    assert(r->offset + r->size <= r->entity->size);
    pthread_mutex_lock(&b->lock);
    if (read_near(b, r, to)) {
        pthread_mutex_unlock(&b->lock);
        metric_add(b->read, r->size);
        return 0;
    }
    request(b, r->entity, (struct span){r->offset, r->offset + r->size}, &b->wanted);
    request(b, r->entity, r->ahead, &b->ahead);
    while (rc == 0 && done < r->size) {
        rc = reader_copy(b, r, r->offset + done, (char *)to + done, &copied);
        if (rc == 0)
            done += copied;
    }
    pthread_mutex_unlock(&b->lock);
    metric_add(b->read, done);
    return rc;
}

void buffer_settle(struct buffer *b, const struct entity *e, struct span s)
{
    const struct block *block;
    pthread_mutex_lock(&b->lock);
    for (uint64_t i = s.from / ENTITY_BLOCK; i * ENTITY_BLOCK < s.to; i++) {
        while ((block = blocks_find(&b->blocks, e, i)) != NULL && block->users > 0)
            pthread_cond_wait(&b->news, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
}

void buffer_readers(struct buffer *b, int change)
{
    pthread_mutex_lock(&b->lock);
    b->readers += (unsigned)change;
    pthread_mutex_unlock(&b->lock);
}

uint64_t buffer_share(struct buffer *b)
{
    pthread_mutex_lock(&b->lock);
    uint64_t share = b->blocks.limit / 5 * 4 / (b->readers > 0 ? b->readers : 1);
    pthread_mutex_unlock(&b->lock);
    return share;
}

uint64_t buffer_used(struct buffer *b)
{
    pthread_mutex_lock(&b->lock);
    uint64_t used = b->blocks.used;
    pthread_mutex_unlock(&b->lock);
    return used;
}

/* ---- its life ---- */

struct buffer *buffer_new(const struct buffer_options *options, const struct data_store *store)
{
    struct buffer *b = xcalloc(1, sizeof *b);
    b->store = *store;
    b->read = metric_get(M_mount_read_bytes_total, "tier=\"buffer\"");
    blocks_init(&b->blocks, options->bytes);
    touched_init(&b->touched, options->bytes / ENTITY_BLOCK + 1);
    queue_init(&b->wanted);
    queue_init(&b->ahead);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->work, NULL);
    condition_init(&b->news);
    b->threads = xcalloc(options->fetchers, sizeof *b->threads);
    for (unsigned i = 0; i < options->fetchers; i++) {
        if (pthread_create(&b->threads[i], NULL, fetcher, b) != 0)
            break;
        b->fetchers++;
    }
    if (b->fetchers > 0)
        return b;
    buffer_free(b);
    return NULL;
}

void buffer_free(struct buffer *b)
{
    if (b == NULL)
        return;
    pthread_mutex_lock(&b->lock);
    b->stop = true;
    pthread_cond_broadcast(&b->work);
    pthread_mutex_unlock(&b->lock);
    for (unsigned i = 0; i < b->fetchers; i++)
        pthread_join(b->threads[i], NULL);
    blocks_done(&b->blocks);
    touched_done(&b->touched);
    pthread_cond_destroy(&b->news);
    pthread_cond_destroy(&b->work);
    pthread_mutex_destroy(&b->lock);
    free(b->threads);
    free(b);
}

/* ---- nothing ---- */

static int drop(void *context, const void *data, size_t size)
{
    (void)context;
    (void)data;
    (void)size;
    return 0;
}

static int rewind_nothing(void *context)
{
    (void)context;
    return 0;
}

const struct dfc_sink data_nothing = {.write = drop, .rewind = rewind_nothing};
