#include "target/cold/ranges.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "target/cold/internal.h"

struct range {
    struct cold_ranges *of;
    uint64_t first, end;
    bool answered;
    struct bpipe *pipe; /* of an answer that is right */
    struct error err;
};

struct cold_ranges {
    struct fetch *f; /* a reference */
    uint64_t size, range_bytes;
    uint64_t memory; /* of c->range_memory */
    unsigned width;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t answered;
    unsigned refs; /* the fetcher's, and those of the questions under way */
    bool over;
    uint64_t asked_to; /* all before has been asked for */
    uint64_t asked, taken;
    struct range ranges[]; /* `width`, used again and again: asked, but not taken, are fewer */
};

static void ranges_unref(struct cold_ranges *r)
{
    pthread_mutex_lock(&r->lock);
    bool last = --r->refs == 0;
    pthread_mutex_unlock(&r->lock);
    if (!last)
        return;
    atomic_fetch_sub(&r->f->cold->range_memory, r->memory);
    fetch_unref(r->f);
    pthread_cond_destroy(&r->answered);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static void leave_pipe(struct bpipe **pipe)
{
    if (*pipe != NULL)
        bpipe_cancel(*pipe, NULL);
    bpipe_unref(steal(*pipe));
}

/* --- the questions ---------------------------------------------------------------------------- */

static int check_answer(const struct range *g, const struct backend_facts *facts, struct error *err)
{
    const struct fetch *f = g->of->f;
    if (facts->status == 206 && facts->offset == g->first && facts->size == f->facts.length &&
        facts->length == (int64_t)(g->end - g->first) && strcmp(facts->etag, f->facts.etag) == 0)
        return 0;
    return error_set(err, E_BACKEND, "the backend answered with another range, or version");
}

static void ask_range(const struct range *g, struct bpipe **pipe, struct error *err)
{
    const struct fetch *f = g->of->f;
    struct backend_facts facts;
    char range[COLD_RANGE_MAX];
    snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)g->first,
             (unsigned long long)(g->end - 1));
    const struct backend_ask ask = {.method = HTTP_GET,
                                    .name = f->name,
                                    .url = f->url,
                                    .range = range,
                                    .if_match = f->facts.etag};
    int code = exchange_begin(&f->cold->env, f->backend, &ask, (size_t)(g->end - g->first), &facts,
                              pipe, err);
    if (code == 0 && check_answer(g, &facts, err) != 0)
        leave_pipe(pipe);
}

static void ask_run(void *arg)
{
    struct range *g = arg;
    struct cold_ranges *r = g->of;
    struct bpipe *pipe = NULL;
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&r->lock);
    bool over = r->over;
    pthread_mutex_unlock(&r->lock);
    if (!over)
        ask_range(g, &pipe, &err);
    pthread_mutex_lock(&r->lock);
    over = r->over;
    g->answered = true;
    g->err = err;
    g->pipe = over ? NULL : pipe;
    pthread_cond_signal(&r->answered);
    pthread_mutex_unlock(&r->lock);
    if (over)
        leave_pipe(&pipe);
    ranges_unref(r);
}

/* With the lock: as many as may be under way, beside the one that is read. */
static void ask_more(struct cold_ranges *r)
{
    while (r->asked_to < r->size && r->asked - r->taken < r->width - 1) {
        struct range *g = &r->ranges[r->asked++ % r->width];
        uint64_t left = r->size - r->asked_to;
        *g = (struct range){.of = r, .first = r->asked_to, .err = ERROR_INIT};
        g->end = r->asked_to += left < r->range_bytes ? left : r->range_bytes;
        r->refs++;
        if (cold_submit(&r->f->cold->askers, r->f->backend, ask_run, g, &g->err) != 0) {
            g->answered = true;
            r->refs--;
        }
    }
}

/* --- the fetcher's ---------------------------------------------------------------------------- */

static bool is_wanted(const struct fetch *f, const struct target_params *p)
{
    const struct backend_facts *facts = &f->facts;
    return p->cold_ranges > 1 && facts->length >= 0 &&
           (uint64_t)facts->length > p->cold_ranges_from &&
           (uint64_t)facts->length > p->cold_range_size && backend_etag_is_strong(facts->etag);
}

struct cold_ranges *cold_ranges_begin(struct fetch *f, uint64_t *end)
{
    const struct target_params *p = &f->cold->target->params;
    uint64_t memory = p->cold_ranges * p->cold_range_size;
    if (!is_wanted(f, p))
        return NULL;
    if (atomic_fetch_add(&f->cold->range_memory, memory) + memory > p->cold_range_memory) {
        atomic_fetch_sub(&f->cold->range_memory, memory);
        return NULL;
    }
    unsigned width = (unsigned)p->cold_ranges;
    struct cold_ranges *r = xcalloc(1, sizeof *r + width * sizeof r->ranges[0]);
    *r = (struct cold_ranges){.f = f,
                              .size = (uint64_t)f->facts.length,
                              .range_bytes = p->cold_range_size,
                              .memory = memory,
                              .width = width,
                              .refs = 1,
                              .asked_to = p->cold_range_size};
    atomic_fetch_add(&f->refs, 1);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->answered, NULL);
    pthread_mutex_lock(&r->lock);
    ask_more(r);
    pthread_mutex_unlock(&r->lock);
    *end = p->cold_range_size;
    return r;
}

int cold_ranges_next(struct cold_ranges *r, struct bpipe **pipe, uint64_t *end, struct error *err)
{
    pthread_mutex_lock(&r->lock);
    struct range *g = &r->ranges[r->taken % r->width];
    while (!g->answered)
        pthread_cond_wait(&r->answered, &r->lock);
    *pipe = steal(g->pipe);
    *end = g->end;
    *err = g->err;
    r->taken++;
    ask_more(r);
    pthread_mutex_unlock(&r->lock);
    return err->code;
}

void cold_ranges_end(struct cold_ranges *r)
{
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->lock);
    r->over = true;
    for (; r->taken < r->asked; r->taken++)
        leave_pipe(&r->ranges[r->taken % r->width].pipe);
    pthread_mutex_unlock(&r->lock);
    ranges_unref(r);
}
