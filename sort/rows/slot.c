#include "sort/rows/slot.h"

#include <stdbool.h>

#include "io/pool.h"

#define SMALL 16       /* rows, below which insertion is faster */
#define PART_MIN 32768 /* rows that are worth a thread */
#define PARTS_MAX 32

struct sorting {
    const char *names;
    const struct sort_order *order;
};

/* What all names have in common at their beginning. */
static size_t common_prefix(const struct slot *slots, size_t count, const char *names)
{
    size_t common = count > 0 ? slots[0].name_len : 0;
    for (size_t i = 1; i < count; i++) {
        const char *first = names + slots[0].name;
        const char *name = names + slots[i].name;
        size_t max = slots[i].name_len < common ? slots[i].name_len : common;
        size_t n = 0;
        while (n < max && name[n] == first[n])
            n++;
        common = n;
    }
    return common;
}

/* Big-endian, so that numbers compare as the bytes do; what is missing counts as zero. */
static uint64_t name_key(const char *text, size_t len)
{
    uint64_t key = 0;
    for (size_t i = 0; i < 8; i++)
        key = key << 8 | (i < len ? (unsigned char)text[i] : 0);
    return key;
}

static void make_keys(struct slot *slots, size_t count, const struct sorting *s)
{
    if (s->order->algorithm == SORT_NONE) {
        for (size_t i = 0; i < count; i++)
            slots[i].key = (uint64_t)slots[i].shard << 32 | slots[i].position;
        return;
    }
    if (order_has_key(s->order))
        return;
    if (s->order->algorithm == SORT_NATURAL || s->order->text_keys) {
        for (size_t i = 0; i < count; i++)
            slots[i].key = 0; /* names decide */
        return;
    }
    size_t common = common_prefix(slots, count, s->names);
    for (size_t i = 0; i < count; i++)
        slots[i].key = name_key(s->names + slots[i].name + common, slots[i].name_len - common);
}

static int slot_compare(const struct sorting *s, const struct slot *a, const struct slot *b)
{
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->key != b->key) {
        int c = a->key < b->key ? -1 : 1;
        bool reversed = s->order->decreasing && s->order->algorithm != SORT_NONE;
        return reversed ? -c : c;
    }
    struct sort_row rows[2];
    const struct slot *slots[2] = {a, b};
    for (int i = 0; i < 2; i++)
        rows[i] = (struct sort_row){
            .name = s->names + slots[i]->name,
            .name_len = slots[i]->name_len,
            .shard = slots[i]->shard,
            .position = slots[i]->position,
            .group = slots[i]->group,
            .key = slots[i]->key,
        };
    return order_compare(s->order, &rows[0], &rows[1]);
}

static bool slot_before(const struct sorting *s, const struct slot *a, const struct slot *b)
{
    return slot_compare(s, a, b) < 0;
}

static void swap(struct slot *a, struct slot *b)
{
    struct slot t = *a;
    *a = *b;
    *b = t;
}

static void insertion_sort(const struct sorting *s, struct slot *slots, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct slot moving = slots[i];
        size_t j = i;
        for (; j > 0 && slot_before(s, &moving, &slots[j - 1]); j--)
            slots[j] = slots[j - 1];
        slots[j] = moving;
    }
}

static void heap_sink(const struct sorting *s, struct slot *slots, size_t i, size_t count)
{
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && slot_before(s, &slots[child], &slots[child + 1]))
            child++;
        if (!slot_before(s, &slots[i], &slots[child]))
            return;
        swap(&slots[i], &slots[child]);
    }
}

static void heap_sort(const struct sorting *s, struct slot *slots, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        heap_sink(s, slots, i, count);
    for (size_t end = count; end-- > 1;) {
        swap(&slots[0], &slots[end]);
        heap_sink(s, slots, 0, end);
    }
}

/* Hoare's partition around the median of three; returns the size of the left part. */
static size_t partition(const struct sorting *s, struct slot *slots, size_t count)
{
    struct slot *middle = &slots[count / 2];
    struct slot *last = &slots[count - 1];
    if (slot_before(s, middle, slots))
        swap(middle, slots);
    if (slot_before(s, last, middle))
        swap(last, middle);
    if (slot_before(s, middle, slots))
        swap(middle, slots);
    struct slot pivot = *middle;
    size_t i = 0;
    size_t j = count - 1;
    for (;; i++, j--) {
        while (slot_before(s, &slots[i], &pivot))
            i++;
        while (slot_before(s, &pivot, &slots[j]))
            j--;
        if (i >= j)
            return j + 1;
        swap(&slots[i], &slots[j]);
    }
}

static void quick_sort(const struct sorting *s, struct slot *slots, size_t count, unsigned depth)
{
    while (count > SMALL) {
        if (depth-- == 0) {
            heap_sort(s, slots, count);
            return;
        }
        size_t left = partition(s, slots, count);
        if (left < count - left) {
            quick_sort(s, slots, left, depth);
            slots += left;
            count -= left;
        } else {
            quick_sort(s, slots + left, count - left, depth);
            count = left;
        }
    }
    insertion_sort(s, slots, count);
}

static void part_sort(const struct sorting *s, struct slot *slots, size_t count)
{
    unsigned depth = 0;
    for (size_t n = count; n > 0; n >>= 1)
        depth += 2;
    quick_sort(s, slots, count, depth);
}

/* --- on several threads ----------------------------------------------------------------------- */

struct part {
    struct slot *slots;
    size_t count;
};

struct parts {
    const struct sorting *sorting;
    struct part all[PARTS_MAX]; /* rows of two parts are never mixed */
    size_t count;
};

static struct part *largest(struct parts *p)
{
    struct part *best = &p->all[0];
    for (size_t i = 1; i < p->count; i++) {
        if (p->all[i].count > best->count)
            best = &p->all[i];
    }
    return best;
}

/* More parts than threads, for they are not alike. */
static void divide(struct parts *p, size_t wanted)
{
    while (p->count < wanted) {
        struct part *whole = largest(p);
        if (whole->count < 2 * PART_MIN)
            return;
        size_t left = partition(p->sorting, whole->slots, whole->count);
        p->all[p->count++] =
            (struct part){.slots = whole->slots + left, .count = whole->count - left};
        whole->count = left;
    }
}

static int sort_one_part(void *ctx, size_t i, struct error *err)
{
    (void)err;
    const struct parts *p = ctx;
    part_sort(p->sorting, p->all[i].slots, p->all[i].count);
    return 0;
}

void slots_sort(struct slot *slots, size_t count, const char *names, const struct sort_order *order,
                unsigned threads)
{
    struct sorting s = {.names = names, .order = order};
    make_keys(slots, count, &s);
    struct parts p = {.sorting = &s, .all = {{.slots = slots, .count = count}}, .count = 1};
    size_t wanted = threads < PARTS_MAX / 2 ? 2 * (size_t)threads : PARTS_MAX;
    if (threads > 1)
        divide(&p, wanted);
    parallel_for("sort-rows", threads, p.count, sort_one_part, &p, NULL);
}
