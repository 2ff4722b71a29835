/* A ring of batches.  The reader fills the next one as long as one is free; the taker gives a batch
 * back when it comes for the row after its last one, since that is how long names live. */
#include "sort/rows/ahead.h"

#include <pthread.h>

#include "common/mem.h"
#include "io/thread.h"

#define BATCHES 3
#define BATCH_ROWS 1024
#define BATCH_NAMES 65536 /* bytes; a name more may follow */

struct batch {
    struct sort_row rows[BATCH_ROWS];
    size_t count;
    struct buf names; /* one behind the other */
    int rc;           /* after these rows: more, the end, or an error */
    struct error err;
};

struct ahead {
    struct row_source source;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the three that follow */
    pthread_cond_t changed;
    size_t filled;
    size_t taken; /* batches that came back */
    bool stopped;
    struct batch batches[BATCHES];
    struct batch *at; /* the taker's, or NULL */
    size_t row;       /* its next */
    size_t name;
};

/* --- the reader ------------------------------------------------------------------------------- */

static void batch_fill(struct batch *b, struct row_source source)
{
    b->count = 0;
    buf_clear(&b->names);
    do {
        struct sort_row *row = &b->rows[b->count];
        b->rc = source.next(source.ctx, row, &b->err);
        if (b->rc <= 0)
            return;
        buf_append(&b->names, row->name, row->name_len);
        b->count++;
    } while (b->count < BATCH_ROWS && b->names.len < BATCH_NAMES);
}

/* NULL: nobody takes any more. */
static struct batch *wait_free(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    while (a->filled - a->taken == BATCHES && !a->stopped)
        pthread_cond_wait(&a->changed, &a->lock);
    struct batch *b = a->stopped ? NULL : &a->batches[a->filled % BATCHES];
    pthread_mutex_unlock(&a->lock);
    return b;
}

static void count_up(struct ahead *a, size_t *counter)
{
    pthread_mutex_lock(&a->lock);
    ++*counter;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

static void *read_ahead(void *arg)
{
    struct ahead *a = arg;
    for (struct batch *b; (b = wait_free(a)) != NULL;) {
        batch_fill(b, a->source);
        int rc = b->rc; /* it is the taker's from here on */
        count_up(a, &a->filled);
        if (rc <= 0)
            break;
    }
    return NULL;
}

int ahead_new(const char *thread, struct row_source source, struct ahead **out, struct error *err)
{
    struct ahead *a = xcalloc(1, sizeof *a);
    a->source = source;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    int rc = thread_start(thread, read_ahead, a, &a->thread, err);
    if (rc == 0) {
        *out = a;
        return 0;
    }
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a);
    return rc;
}

void ahead_free(struct ahead *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    a->stopped = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    for (size_t i = 0; i < BATCHES; i++)
        buf_done(&a->batches[i].names);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

/* --- the taker -------------------------------------------------------------------------------- */

/* The batch at hand has no row left. */
static void next_batch(struct ahead *a)
{
    if (a->at != NULL)
        count_up(a, &a->taken);
    pthread_mutex_lock(&a->lock);
    while (a->filled == a->taken)
        pthread_cond_wait(&a->changed, &a->lock);
    a->at = &a->batches[a->taken % BATCHES];
    pthread_mutex_unlock(&a->lock);
    a->row = 0;
    a->name = 0;
}

static int ahead_next(void *ctx, struct sort_row *row, struct error *err)
{
    struct ahead *a = ctx;
    if (a->at == NULL || (a->row == a->at->count && a->at->rc > 0))
        next_batch(a);
    const struct batch *b = a->at;
    if (a->row == b->count)
        return b->rc < 0 ? error_set(err, b->err.code, "%s", b->err.message) : 0;
    *row = b->rows[a->row++];
    row->name = b->names.data + a->name;
    a->name += row->name_len;
    return 1;
}

struct row_source ahead_rows(struct ahead *a)
{
    return (struct row_source){.next = ahead_next, .ctx = a};
}
