#include "mount/volume/walk.h"

#define ANY_TIME ((1ull << 53) - 1) /* ms; exact also for an engine with floating-point times */

enum { POINTS = 500, CHILDREN = 200, PARENTS = 50, QUEUE_FIRST = 4096 };

static int visit_rows(const struct walk *w, const struct meta_item *page, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < page->count && rc == 0; i++)
        rc = w->visit(w->context, &page->rows[i], err);
    return rc;
}

/* The page, and those behind it. */
static int go_on(const struct walk *w, struct meta_item *page, struct arena *arena,
                 struct error *err)
{
    int rc = visit_rows(w, page, err);
    while (rc == 0 && page->more) {
        page->key = page->rows[page->count - 1].key;
        page->after = true;
        struct meta_read r = {.arena = arena, .items = page, .count = 1};
        rc = w->m->ops->read(w->m, &r, err);
        if (rc == 0)
            rc = visit_rows(w, page, err);
    }
    return rc;
}

int walk_points(const struct walk *w, enum meta_kind kind, struct error *err)
{
    struct meta_item page = {.ask = META_PAGE, .limit = POINTS, .key.kind = kind};
    struct arena *arena = arena_new(65536);
    struct meta_read r = {.arena = arena, .items = &page, .count = 1};
    int rc;
    do { /* the last key of a point kind is in no arena */
        arena_reset(arena);
        rc = w->m->ops->read(w->m, &r, err);
        if (rc == 0)
            rc = visit_rows(w, &page, err);
        if (page.count > 0)
            page.key = page.rows[page.count - 1].key;
        page.after = true;
    } while (rc == 0 && page.more);
    arena_free(arena);
    return rc;
}

int walk_children(const struct walk *w, enum meta_kind kind, const uint64_t *ids, size_t count,
                  struct error *err)
{
    struct meta_item pages[PARENTS];
    struct arena *arena = arena_new(65536);
    int rc = 0;
    for (size_t done = 0; done < count && rc == 0; done += PARENTS) {
        struct meta_read r = {.arena = arena, .items = pages};
        arena_reset(arena);
        for (; r.count < PARENTS && done + r.count < count; r.count++) {
            pages[r.count] = (struct meta_item){.ask = META_PAGE, .limit = CHILDREN};
            pages[r.count].key = (struct meta_key){.kind = kind, .id = ids[done + r.count]};
        }
        rc = w->m->ops->read(w->m, &r, err);
        for (size_t i = 0; i < r.count && rc == 0; i++)
            rc = go_on(w, &pages[i], arena, err);
    }
    arena_free(arena);
    return rc;
}

/* An engine gives a queue from its beginning, so a page that is too small is asked for anew. */
int walk_queue(const struct walk *w, enum meta_kind kind, struct error *err)
{
    struct meta_item page = {.limit = QUEUE_FIRST, .key.kind = kind};
    struct arena *arena = arena_new(65536);
    int rc = w->m->ops->queue(w->m, arena, &page, ANY_TIME, err);
    while (rc == 0 && page.more) {
        arena_reset(arena);
        page.limit *= 4;
        rc = w->m->ops->queue(w->m, arena, &page, ANY_TIME, err);
    }
    if (rc == 0)
        rc = visit_rows(w, &page, err);
    arena_free(arena);
    return rc;
}
