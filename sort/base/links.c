#include "sort/base/links.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/mem.h"

struct slot_state {
    struct bpipe *pipe; /* has come, has not been taken */
    bool used;          /* one has come at some time */
};

struct links {
    pthread_mutex_t lock;   /* guards everything here, and the links' `ready` */
    pthread_cond_t changed; /* a stream came, or the stop */
    struct link *first;
    atomic_bool stopped; /* written under the lock */
    struct error why;
    unsigned slot_count;
    struct slot_state *slots;
};

struct link {
    struct links *set;
    struct bpipe *pipe;
    pthread_cond_t cond;
    struct link *prev, *next;
    bool ready; /* the pipe says that it is worth trying again */
    bool writer;
    bool ended;
};

struct links *links_new(unsigned slots)
{
    struct links *l = xcalloc(1, sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    l->slot_count = slots;
    l->slots = xcalloc(slots, sizeof *l->slots);
    return l;
}

static void pipe_drop(struct bpipe *pipe, const struct error *why)
{
    bpipe_cancel(pipe, why);
    bpipe_unref(pipe);
}

/* Takes the pipe out of one slot, under the lock. */
static struct bpipe *slot_empty(struct links *l, unsigned slot)
{
    pthread_mutex_lock(&l->lock);
    struct bpipe *pipe = l->slots[slot].pipe;
    l->slots[slot].pipe = NULL;
    pthread_mutex_unlock(&l->lock);
    return pipe;
}

static void slots_drop(struct links *l, const struct error *why)
{
    for (unsigned i = 0; i < l->slot_count; i++) {
        struct bpipe *pipe = slot_empty(l, i);
        if (pipe != NULL)
            pipe_drop(pipe, why);
    }
}

void links_free(struct links *l)
{
    if (l == NULL)
        return;
    assert(l->first == NULL);
    struct error why = ERROR_INIT;
    error_set(&why, E_ABORTED, "the job has ended");
    slots_drop(l, &why);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l->slots);
    free(l);
}

void links_stop(struct links *l, const struct error *why)
{
    assert(why->code != 0);
    pthread_mutex_lock(&l->lock);
    if (!atomic_load(&l->stopped)) {
        l->why = *why;
        atomic_store(&l->stopped, true);
    }
    pthread_cond_broadcast(&l->changed);
    for (struct link *k = l->first; k != NULL; k = k->next)
        pthread_cond_broadcast(&k->cond);
    pthread_mutex_unlock(&l->lock);
    slots_drop(l, why);
}

int links_check(const struct links *l, struct error *err)
{
    if (!atomic_load(&l->stopped))
        return 0;
    /* `why` was written before and never changes. */
    return error_set(err, l->why.code, "%s", l->why.message);
}

int links_offer(struct links *l, unsigned slot, struct bpipe *pipe, struct error *err)
{
    assert(slot < l->slot_count);
    pthread_mutex_lock(&l->lock);
    int rc = links_check(l, err);
    if (rc == 0 && l->slots[slot].used)
        rc = error_set(err, E_JOB_STATE, "this stream has come before");
    if (rc == 0) {
        l->slots[slot] = (struct slot_state){.pipe = bpipe_ref(pipe), .used = true};
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return rc;
}

int links_take(struct links *l, unsigned slot, struct link **out, struct error *err)
{
    assert(slot < l->slot_count);
    pthread_mutex_lock(&l->lock);
    while (l->slots[slot].pipe == NULL && !atomic_load(&l->stopped))
        pthread_cond_wait(&l->changed, &l->lock);
    struct bpipe *pipe = l->slots[slot].pipe;
    l->slots[slot].pipe = NULL;
    pthread_mutex_unlock(&l->lock);
    if (pipe == NULL)
        return links_check(l, err);
    *out = link_reader(l, pipe);
    return 0;
}

static void link_wake(void *arg)
{
    struct link *k = arg;
    pthread_mutex_lock(&k->set->lock);
    k->ready = true;
    pthread_cond_broadcast(&k->cond);
    pthread_mutex_unlock(&k->set->lock);
}

static struct link *link_new(struct links *l, struct bpipe *pipe, bool writer)
{
    struct link *k = xcalloc(1, sizeof *k);
    *k = (struct link){.set = l, .pipe = pipe, .writer = writer};
    pthread_cond_init(&k->cond, NULL);
    pthread_mutex_lock(&l->lock);
    k->next = l->first;
    if (k->next != NULL)
        k->next->prev = k;
    l->first = k;
    pthread_mutex_unlock(&l->lock);
    return k;
}

struct link *link_reader(struct links *l, struct bpipe *pipe)
{
    struct link *k = link_new(l, pipe, false);
    bpipe_on_data(pipe, link_wake, k);
    return k;
}

struct link *link_writer(struct links *l, struct bpipe *pipe)
{
    struct link *k = link_new(l, pipe, true);
    bpipe_on_space(pipe, link_wake, k);
    return k;
}

/* Until the pipe wakes us or everything stops. */
static int link_wait(struct link *k, struct error *err)
{
    pthread_mutex_lock(&k->set->lock);
    while (!k->ready && !atomic_load(&k->set->stopped))
        pthread_cond_wait(&k->cond, &k->set->lock);
    k->ready = false;
    pthread_mutex_unlock(&k->set->lock);
    return links_check(k->set, err);
}

static ssize_t link_read(void *ctx, void *out, size_t max, struct error *err)
{
    struct link *k = ctx;
    int rc = links_check(k->set, err);
    while (rc == 0) {
        ssize_t n = bpipe_try_read(k->pipe, out, max, err);
        if (n != BPIPE_AGAIN) {
            k->ended = n <= 0;
            return n;
        }
        rc = link_wait(k, err);
    }
    return rc;
}

static int link_write(void *ctx, const void *data, size_t len, struct error *err)
{
    struct link *k = ctx;
    const char *at = data;
    int rc = links_check(k->set, err);
    while (rc == 0 && len > 0) {
        ssize_t n = bpipe_try_write(k->pipe, at, len, err);
        if (n == BPIPE_AGAIN) {
            rc = link_wait(k, err);
        } else if (n < 0) {
            rc = (int)n;
        } else {
            at += n;
            len -= (size_t)n;
        }
    }
    return rc;
}

struct source source_link(struct link *k)
{
    return (struct source){.read = link_read, .ctx = k};
}

struct sink sink_link(struct link *k)
{
    return (struct sink){.write = link_write, .ctx = k};
}

void link_finish(struct link *k, const struct error *error_or_null)
{
    assert(k->writer && !k->ended);
    k->ended = true;
    bpipe_finish(k->pipe, error_or_null);
}

/* Afterwards the pipe's wake-up does not run any more, here or elsewhere. */
static void link_leave(struct link *k)
{
    struct error why = ERROR_INIT;
    if (links_check(k->set, &why) == 0)
        error_set(&why, E_ABORTED, "this end of the stream is given up");
    if (k->writer && !k->ended)
        bpipe_finish(k->pipe, &why);
    else if (!k->writer && !k->ended)
        bpipe_cancel(k->pipe, &why);
    else if (!k->writer)
        bpipe_on_data(k->pipe, NULL, NULL);
}

void link_free(struct link *k)
{
    if (k == NULL)
        return;
    link_leave(k);
    struct links *l = k->set;
    pthread_mutex_lock(&l->lock);
    if (k->prev != NULL)
        k->prev->next = k->next;
    else
        l->first = k->next;
    if (k->next != NULL)
        k->next->prev = k->prev;
    pthread_mutex_unlock(&l->lock);
    bpipe_unref(k->pipe);
    pthread_cond_destroy(&k->cond);
    free(k);
}
