#include "target/index/walk.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"

/* --- parts ------------------------------------------------------------------------------------ */

void index_walk_begin(struct index_walk *w)
{
    w->steps = w->names = w->bytes = 0;
}

static bool is_stopped(const struct index_walk *w)
{
    return w->stop != NULL && atomic_load(w->stop);
}

static bool is_full(const struct index_walk *w)
{
    return w->steps >= INDEX_STEPS_MAX || (w->names_max > 0 && w->names >= w->names_max) ||
           (w->bytes_max > 0 && w->bytes >= w->bytes_max);
}

bool index_walk_look(struct index_walk *w, const char *name, const struct index_record *record,
                     index_walk_fn *fn, void *ctx)
{
    w->more = !is_stopped(w);
    if (!w->more)
        return false;
    snprintf(w->last, sizeof w->last, "%s", name);
    enum index_answer answer = fn(ctx, w->last, record);
    w->steps++;
    w->names += answer == INDEX_TAKE;
    w->bytes += answer == INDEX_TAKE ? strlen(w->last) + 1 : 0;
    w->more = answer != INDEX_END;
    return w->more && !is_full(w);
}

void index_walk_end(struct index_walk *w, bool has_next)
{
    w->more = w->more && has_next && !is_stopped(w);
}

int index_walk(struct index *x, struct index_walk *w, index_walk_fn *fn, void *ctx,
               struct error *err)
{
    _cleanup_(index_cursor_closep)
    struct index_cursor *c = NULL;
    int found = index_cursor_open(x, &c, err);
    if (found == 0)
        found = index_cursor_seek(c, w->bucket_id, w->last, *w->last != '\0', err);
    index_walk_begin(w);
    bool goes_on = true;
    while (found == 1 && goes_on) {
        goes_on = index_walk_look(w, index_cursor_name(c), index_cursor_record(c), fn, ctx);
        if (w->more)
            found = index_cursor_next(c, err);
    }
    index_walk_end(w, found == 1);
    return found < 0 ? found : 0;
}

/* --- batches ---------------------------------------------------------------------------------- */

struct index_batch *index_batch_new(uint64_t bucket_id, const atomic_bool *stop,
                                    index_wanted_fn *wanted, const void *ctx)
{
    struct index_batch *b = xcalloc(1, sizeof *b);
    *b = (struct index_batch){
        .walk = {.bucket_id = bucket_id,
                 .names_max = INDEX_BATCH_NAMES,
                 .bytes_max = INDEX_BATCH_BYTES,
                 .stop = stop,
                 .more = true},
        .wanted = wanted,
        .ctx = ctx,
        .arena = arena_new(64 * 1024),
    };
    return b;
}

void index_batch_free(struct index_batch *b)
{
    if (b == NULL)
        return;
    arena_free(b->arena);
    free(b);
}

void index_batch_clear(struct index_batch *b)
{
    arena_reset(b->arena);
    b->count = 0;
}

enum index_answer index_batch_take(void *batch, const char *name, const struct index_record *record)
{
    struct index_batch *b = batch;
    if (b->wanted != NULL && !b->wanted(b->ctx, name, record))
        return INDEX_PASS;
    b->names[b->count++] = arena_strdup(b->arena, name);
    return INDEX_TAKE;
}

int index_batch_fill(struct index_batch *b, struct index *x, struct error *err)
{
    index_batch_clear(b);
    return index_walk(x, &b->walk, index_batch_take, b, err);
}
