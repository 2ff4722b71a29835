#include "target/store/lru_pick.h"

#include <stdlib.h>

#include "common/mem.h"

/* A heap whose root is the youngest that is kept: it is the one to go when an older one comes. */
struct lru_pick {
    uint64_t need, sum;
    size_t count, count_max, cap;
    struct lru_item *heap;
};

struct lru_pick *lru_pick_new(uint64_t need_bytes, size_t count_max)
{
    struct lru_pick *p = xcalloc(1, sizeof *p);
    *p = (struct lru_pick){.need = need_bytes, .count_max = count_max};
    return p;
}

void lru_pick_free(struct lru_pick *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->count; i++)
        free(p->heap[i].name);
    free(p->heap);
    free(p);
}

static void swap(struct lru_item *a, struct lru_item *b)
{
    struct lru_item t = *a;
    *a = *b;
    *b = t;
}

static void sift_up(struct lru_pick *p, size_t at)
{
    for (; at > 0 && p->heap[at].used_s > p->heap[(at - 1) / 2].used_s; at = (at - 1) / 2)
        swap(&p->heap[at], &p->heap[(at - 1) / 2]);
}

static void sift_down(struct lru_pick *p)
{
    for (size_t at = 0, child; (child = 2 * at + 1) < p->count; at = child) {
        if (child + 1 < p->count && p->heap[child + 1].used_s > p->heap[child].used_s)
            child++;
        if (p->heap[at].used_s >= p->heap[child].used_s)
            return;
        swap(&p->heap[at], &p->heap[child]);
    }
}

static void drop_youngest(struct lru_pick *p)
{
    p->sum -= p->heap[0].size;
    free(p->heap[0].name);
    p->heap[0] = p->heap[--p->count];
    sift_down(p);
}

void lru_pick_add(struct lru_pick *p, int64_t used_s, uint64_t size, uint64_t bucket_id,
                  const char *name)
{
    if (p->count > 0 && (p->sum >= p->need || p->count == p->count_max) &&
        used_s >= p->heap[0].used_s)
        return;
    if (p->count == p->cap) {
        p->cap = p->cap > 0 ? 2 * p->cap : 64;
        p->heap = xrealloc(p->heap, p->cap * sizeof *p->heap);
    }
    p->heap[p->count] = (struct lru_item){
        .used_s = used_s, .size = size, .bucket_id = bucket_id, .name = xstrdup(name)};
    sift_up(p, p->count++);
    p->sum += size;
    while (p->count > p->count_max || (p->count > 1 && p->sum - p->heap[0].size >= p->need))
        drop_youngest(p);
}

static int older_first(const void *a, const void *b)
{
    const struct lru_item *x = a, *y = b;
    return (x->used_s > y->used_s) - (x->used_s < y->used_s);
}

const struct lru_item *lru_pick_finish(struct lru_pick *p, size_t *count)
{
    *count = p->count;
    if (p->count > 0)
        qsort(p->heap, p->count, sizeof *p->heap, older_first);
    return p->heap;
}
