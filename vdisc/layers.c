#include "vdisc/layers.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "vdisc/iso_path.h"

/* In the order of paths, so that everything below a path follows it; high layers first. */
struct applying {
    const struct layer_entry *entries;
    uint32_t *order;
    size_t count;
    bool *keep;
    bool *removed_something;
};

/* A path on the way down to the present one. */
struct level {
    size_t first, end; /* in the order: the entries with this path */
    int hides;         /* layers below this one are hidden under it; 0: none */
};

static int compare(const void *a, const void *b, void *context)
{
    const struct layer_entry *entries = context;
    const struct layer_entry *ea = &entries[*(const uint32_t *)a];
    const struct layer_entry *eb = &entries[*(const uint32_t *)b];
    int order = iso_path_compare(ea->path, eb->path);
    return order != 0 ? order : (int)eb->layer - (int)ea->layer;
}

static const struct layer_entry *at(const struct applying *a, size_t i)
{
    return &a->entries[a->order[i]];
}

static bool is_below(const char *path, const char *directory)
{
    const size_t len = strlen(directory);
    return len == 0 || (strncmp(path, directory, len) == 0 && path[len] == '/');
}

/* Lower layers under this path are hidden by the highest entry that is no directory. */
static int hides_of(const struct applying *a, const struct level *l)
{
    for (size_t i = l->first; i < l->end; i++) {
        if (!at(a, i)->directory)
            return at(a, i)->layer;
    }
    return 0;
}

/* The entry's layer is above those of files at this path, which it makes a directory of. */
static void drop_files(const struct applying *a, const struct level *l, int layer)
{
    for (size_t i = l->first; i < l->end; i++) {
        if (at(a, i)->layer < layer && !at(a, i)->directory)
            a->keep[a->order[i]] = false;
    }
}

static void mark_removals(const struct applying *a, const struct level *l, int layer)
{
    for (size_t i = l->first; i < l->end; i++)
        a->removed_something[a->order[i]] |= at(a, i)->removal && layer < at(a, i)->layer;
}

static void take(const struct applying *a, const struct level *levels, size_t depth)
{
    const struct level *l = &levels[depth - 1];
    for (size_t i = l->first; i < l->end; i++) {
        const int layer = at(a, i)->layer;
        bool *keep = &a->keep[a->order[i]];
        *keep = *keep && layer == at(a, l->first)->layer;
        mark_removals(a, l, layer);
        for (size_t up = 0; up + 1 < depth; up++) {
            *keep = *keep && layer >= levels[up].hides;
            mark_removals(a, &levels[up], layer);
            if (!at(a, i)->removal)
                drop_files(a, &levels[up], layer);
        }
    }
}

static void walk(const struct applying *a)
{
    struct level *levels = NULL;
    size_t depth = 0, room = 0;
    for (size_t i = 0; i < a->count;) {
        const char *path = at(a, i)->path;
        while (depth > 0 && !is_below(path, at(a, levels[depth - 1].first)->path))
            depth--;
        if (depth == room) {
            room = room * 2 + 16;
            levels = xrealloc(levels, room * sizeof *levels);
        }
        struct level *l = &levels[depth++];
        *l = (struct level){.first = i, .end = i};
        while (l->end < a->count && strcmp(at(a, l->end)->path, path) == 0)
            l->end++;
        l->hides = hides_of(a, l);
        take(a, levels, depth);
        i = l->end;
    }
    free(levels);
}

size_t layers_apply(const struct layer_entry *entries, size_t count, bool *keep)
{
    struct applying a = {.entries = entries, .count = count, .keep = keep};
    size_t idle = SIZE_MAX;
    a.order = xcalloc(count + 1, sizeof *a.order);
    a.removed_something = xcalloc(count + 1, sizeof *a.removed_something);
    for (size_t i = 0; i < count; i++) {
        a.order[i] = (uint32_t)i;
        keep[i] = !entries[i].removal;
    }
    qsort_r(a.order, count, sizeof *a.order, compare, (void *)entries);
    walk(&a);
    for (size_t i = 0; i < count && idle == SIZE_MAX; i++) {
        if (entries[i].removal && !a.removed_something[i])
            idle = i;
    }
    free(a.order);
    free(a.removed_something);
    return idle;
}
