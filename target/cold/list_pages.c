#include "target/cold/list_pages.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "common/mem.h"

/* Of the row while it is `listed`; and as long as somebody uses it. */
struct list_reading {
    struct list_reading *newer, *older;
    bool listed, done;
    unsigned users; /* the row, who reads it, who is being given it */
    char *job;
    struct buf key, text;
    uint64_t began_ms;
    struct list_asker *askers, **last;
};

struct list_pages {
    pthread_mutex_t lock; /* of all that follows, and of every page but for its text once done */
    struct list_reading *newest, *oldest;
    uint64_t bytes, max_bytes;
};

struct list_pages *list_pages_new(uint64_t max_bytes)
{
    struct list_pages *p = xcalloc(1, sizeof *p);
    p->max_bytes = max_bytes;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

/* --- the row, by use; under the lock ---------------------------------------------------------- */

static uint64_t bytes_of(const struct list_reading *r)
{
    return r->done ? sizeof *r + r->key.len + r->text.len : 0;
}

static void release(struct list_reading *r)
{
    if (--r->users > 0)
        return;
    assert(r->askers == NULL);
    buf_done(&r->key);
    buf_done(&r->text);
    free(r->job);
    free(r);
}

static void put_first(struct list_pages *p, struct list_reading *r)
{
    r->newer = NULL;
    r->older = p->newest;
    *(p->newest != NULL ? &p->newest->newer : &p->oldest) = r;
    p->newest = r;
}

static void take_out(struct list_pages *p, struct list_reading *r)
{
    *(r->newer != NULL ? &r->newer->older : &p->newest) = r->older;
    *(r->older != NULL ? &r->older->newer : &p->oldest) = r->newer;
}

static void drop(struct list_pages *p, struct list_reading *r)
{
    take_out(p, r);
    p->bytes -= bytes_of(r);
    r->listed = false;
    release(r);
}

/* What is being read has no bytes yet, and stays. */
static void make_room(struct list_pages *p)
{
    struct list_reading *r = p->oldest;
    while (r != NULL && p->bytes > p->max_bytes) {
        struct list_reading *newer = r->newer;
        if (r->done)
            drop(p, r);
        r = newer;
    }
}

static struct list_reading *find(const struct list_pages *p, const struct list_wanted *w)
{
    struct list_reading *r = p->newest;
    while (r != NULL && (r->key.len != w->key_len || memcmp(r->key.data, w->key, w->key_len) != 0 ||
                         strcmp(r->job, w->job) != 0))
        r = r->older;
    return r;
}

static bool is_too_old(const struct list_reading *r, const struct list_wanted *w)
{
    return w->max_age_ms > 0 && r->began_ms + w->max_age_ms < w->now_ms;
}

static struct list_reading *begin(struct list_pages *p, const struct list_wanted *w)
{
    struct list_reading *r = xcalloc(1, sizeof *r);
    r->job = xstrdup(w->job);
    buf_append(&r->key, w->key, w->key_len);
    r->began_ms = w->now_ms;
    r->last = &r->askers;
    r->listed = true;
    r->users = 2;
    put_first(p, r);
    return r;
}

static void add_asker(struct list_reading *r, struct list_asker *asker)
{
    asker->next = NULL;
    *r->last = asker;
    r->last = &asker->next;
}

/* --- asking and reading ----------------------------------------------------------------------- */

static void done_with(struct list_pages *p, struct list_reading *r)
{
    pthread_mutex_lock(&p->lock);
    release(r);
    pthread_mutex_unlock(&p->lock);
}

struct list_reading *list_pages_ask(struct list_pages *p, const struct list_wanted *w,
                                    struct list_asker *asker)
{
    struct list_reading *to_read = NULL, *kept = NULL;
    pthread_mutex_lock(&p->lock);
    struct list_reading *r = find(p, w);
    if (r != NULL && is_too_old(r, w)) {
        drop(p, r);
        r = NULL;
    }
    if (r == NULL)
        to_read = r = begin(p, w);
    if (!r->done) {
        add_asker(r, asker);
    } else {
        kept = r;
        kept->users++;
        take_out(p, r);
        put_first(p, r);
    }
    pthread_mutex_unlock(&p->lock);
    if (kept != NULL) {
        asker->fn(asker, &kept->text, NULL);
        done_with(p, kept);
    }
    return to_read;
}

void list_pages_read(struct list_pages *p, struct list_reading *r, struct buf *text,
                     const struct error *err)
{
    pthread_mutex_lock(&p->lock);
    struct list_asker *asker = r->askers;
    r->askers = NULL;
    if (err != NULL && r->listed)
        drop(p, r);
    if (err == NULL) {
        r->text = *text;
        *text = BUF_INIT;
        r->done = true;
        p->bytes += r->listed ? bytes_of(r) : 0;
        make_room(p);
    }
    pthread_mutex_unlock(&p->lock);
    while (asker != NULL) {
        struct list_asker *next = asker->next;
        asker->fn(asker, err == NULL ? &r->text : NULL, err);
        asker = next;
    }
    done_with(p, r);
}

/* --- the end ---------------------------------------------------------------------------------- */

void list_pages_forget(struct list_pages *p, bool (*is_over)(const void *ctx, const char *job),
                       const void *ctx)
{
    pthread_mutex_lock(&p->lock);
    struct list_reading *r = p->newest;
    while (r != NULL) {
        struct list_reading *older = r->older;
        if (is_over(ctx, r->job))
            drop(p, r);
        r = older;
    }
    pthread_mutex_unlock(&p->lock);
}

uint64_t list_pages_bytes(struct list_pages *p)
{
    pthread_mutex_lock(&p->lock);
    uint64_t bytes = p->bytes;
    pthread_mutex_unlock(&p->lock);
    return bytes;
}

void list_pages_free(struct list_pages *p)
{
    if (p == NULL)
        return;
    while (p->newest != NULL) {
        assert(p->newest->done);
        drop(p, p->newest);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}
