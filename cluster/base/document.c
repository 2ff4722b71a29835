#include "cluster/base/document.h"

#include <stdatomic.h>
#include <string.h>

#include "common/mem.h"

enum { FIRST_BLOCK_BYTES = 512 };

struct document {
    atomic_uint refs;
    struct arena *arena;
    void (*on_free)(void *arg);
    void *on_free_arg;
    atomic_ullong sum; /* 0: not computed yet */
};

struct document *document_new(void)
{
    struct document *d = xcalloc(1, sizeof *d);
    atomic_init(&d->refs, 1);
    d->arena = arena_new(FIRST_BLOCK_BYTES);
    return d;
}

struct document *document_ref(struct document *d)
{
    if (d != NULL)
        atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return d;
}

void document_unref(struct document *d)
{
    if (d == NULL || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (d->on_free != NULL)
        d->on_free(d->on_free_arg);
    arena_free(d->arena);
    free(d);
}

void document_on_free(struct document *d, void (*fn)(void *arg), void *arg)
{
    d->on_free = fn;
    d->on_free_arg = arg;
}

uint64_t document_sum(struct document *d, uint64_t (*compute)(const void *doc), const void *doc)
{
    uint64_t sum = d != NULL ? atomic_load(&d->sum) : 0;
    if (sum != 0)
        return sum;
    sum = compute(doc);
    if (d != NULL)
        atomic_store(&d->sum, sum);
    return sum;
}

struct arena *document_arena(struct document *d)
{
    return d->arena;
}

static const char *name_of(const void *item, size_t name_offset)
{
    return *(char *const *)((const char *)item + name_offset);
}

size_t document_find(const void *items, size_t count, size_t item_size, size_t name_offset,
                     const char *name, bool *found)
{
    size_t low = 0;
    size_t high = count;
    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name_of((const char *)items + middle * item_size, name_offset), name);
        *found = *found || order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* <0: the item at `a` comes first; >0: that at `b`.  One of them is NULL where its array has
 * ended. */
static int merge_order(const char *a, const char *b)
{
    if (a == NULL)
        return 1;
    return b == NULL ? -1 : strcmp(a, b);
}

const char *document_merge(const void *items, size_t count, size_t item_size, size_t name_offset,
                           const struct document_change *c,
                           void (*append)(void *to, const void *item), void *to)
{
    const char *missing = NULL;
    size_t drop = 0;
    size_t put = 0;
    for (size_t i = 0; i < count || put < c->put_count;) {
        const char *old = i < count ? (const char *)items + i * item_size : NULL;
        const char *new = put < c->put_count ? (const char *)c->put + put *item_size : NULL;
        const char *old_name = old != NULL ? name_of(old, name_offset) : NULL;
        int order = merge_order(old_name, new != NULL ? name_of(new, name_offset) : NULL);
        while (old_name != NULL && drop < c->drop_count && strcmp(c->drop[drop], old_name) < 0)
            missing = c->drop[drop++];
        bool leaves =
            old_name != NULL && drop < c->drop_count && strcmp(c->drop[drop], old_name) == 0;
        if (order >= 0)
            append(to, new);
        else if (!leaves)
            append(to, old);
        put += order >= 0;
        drop += leaves && order <= 0;
        i += order <= 0;
    }
    return drop < c->drop_count ? c->drop[drop] : missing;
}

static int compare_names(const void *a, const void *b, void *offset)
{
    return strcmp(name_of(a, *(const size_t *)offset), name_of(b, *(const size_t *)offset));
}

const char *document_sort(void *items, size_t count, size_t item_size, size_t name_offset)
{
    if (count == 0)
        return NULL;
    qsort_r(items, count, item_size, compare_names, &name_offset);
    for (size_t i = 1; i < count; i++) {
        const char *item = (const char *)items + i * item_size;
        const char *name = name_of(item, name_offset);
        if (strcmp(name_of(item - item_size, name_offset), name) == 0)
            return name;
    }
    return NULL;
}
