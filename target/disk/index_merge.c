#include "target/disk/index_merge.h"

#include <string.h>

/* --- opening ---------------------------------------------------------------------------------- */

static int add(struct index_merge *m, struct index *x, struct error *err)
{
    int code = index_check(x, err);
    if (code == 0)
        code = index_cursor_open(x, &m->sources[m->count].cursor, err);
    m->count += code == 0;
    return code;
}

/* A name leaves one index only when it stands in another: mountpaths_listing_begin(). */
static int add_all(struct index_merge *m, struct mountpaths *all, struct error *err)
{
    m->set = mountpaths_current(all);
    int code = mountpath_set_check_whole(m->set, err);
    if (code != 0)
        return code;
    mountpaths_listing_begin(all);
    for (size_t i = 0; i < m->set->count && code == 0; i++)
        code = add(m, m->set->all[i]->index, err);
    mountpaths_listing_end(all);
    return code;
}

int index_merge_open(struct index_merge *m, struct mountpaths *all, const struct mountpath *one,
                     uint64_t bucket_id, struct error *err)
{
    m->bucket_id = bucket_id;
    return one != NULL ? add(m, one->index, err) : add_all(m, all, err);
}

void index_merge_close(struct index_merge *m)
{
    for (size_t i = 0; i < m->count; i++)
        index_cursor_close(m->sources[i].cursor);
    mountpath_set_unref(m->set);
}

/* --- moving ----------------------------------------------------------------------------------- */

static int moved(struct index_merge_source *s, int found)
{
    s->on_name = found == 1;
    return found < 0 ? found : 0;
}

int index_merge_seek(struct index_merge *m, const char *name, bool after, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < m->count && code == 0; i++) {
        struct index_merge_source *s = &m->sources[i];
        code = moved(s, index_cursor_seek(s->cursor, m->bucket_id, name, after, err));
    }
    return code;
}

const struct index_cursor *index_merge_least(const struct index_merge *m)
{
    const struct index_cursor *least = NULL;
    for (size_t i = 0; i < m->count; i++) {
        const struct index_cursor *c = m->sources[i].cursor;
        if (!m->sources[i].on_name)
            continue;
        int order = least != NULL ? strcmp(index_cursor_name(c), index_cursor_name(least)) : -1;
        if (order == 0)
            order = version_compare(&index_cursor_record(least)->version,
                                    &index_cursor_record(c)->version);
        if (order < 0)
            least = c;
    }
    return least;
}

int index_merge_skip(struct index_merge *m, const char *name, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < m->count && code == 0; i++) {
        struct index_merge_source *s = &m->sources[i];
        if (s->on_name && strcmp(index_cursor_name(s->cursor), name) == 0)
            code = moved(s, index_cursor_next(s->cursor, err));
    }
    return code;
}

void index_merge_end(struct index_merge *m)
{
    for (size_t i = 0; i < m->count; i++)
        m->sources[i].on_name = false;
}

uint64_t index_merge_visited(const struct index_merge *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->count; i++)
        sum += index_cursor_visited(m->sources[i].cursor);
    return sum;
}

/* --- walks in parts --------------------------------------------------------------------------- */

static int walk_part(struct index_merge *m, struct index_walk *w, index_walk_fn *fn, void *ctx,
                     struct error *err)
{
    const struct index_cursor *c;
    int code = index_merge_seek(m, w->last, *w->last != '\0', err);
    index_walk_begin(w);
    bool goes_on = true;
    while (code == 0 && goes_on && (c = index_merge_least(m)) != NULL) {
        goes_on = index_walk_look(w, index_cursor_name(c), index_cursor_record(c), fn, ctx);
        if (w->more)
            code = index_merge_skip(m, w->last, err);
    }
    index_walk_end(w, code == 0 && index_merge_least(m) != NULL);
    return code;
}

int index_merge_walk(struct mountpaths *all, const struct mountpath *one, struct index_walk *w,
                     index_walk_fn *fn, void *ctx, struct error *err)
{
    struct index_merge m = {.count = 0};
    int code = index_merge_open(&m, all, one, w->bucket_id, err);
    if (code == 0)
        code = walk_part(&m, w, fn, ctx, err);
    index_merge_close(&m);
    return code;
}

int index_merge_fill(struct mountpaths *all, const struct mountpath *one, struct index_batch *b,
                     struct error *err)
{
    index_batch_clear(b);
    return index_merge_walk(all, one, &b->walk, index_batch_take, b, err);
}
