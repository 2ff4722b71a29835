#include "vdisc/text_order.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct keyed {
    uint64_t key; /* the ranks of 8 bytes of the text */
    uint32_t number;
};

/* Bytes at the begin that all texts have. */
static size_t common_length(const struct text_order *o, uint32_t count)
{
    const char *first = o->text(o->context, 0);
    size_t common = strlen(first);
    for (uint32_t i = 1; i < count && common > 0; i++) {
        const char *text = o->text(o->context, i);
        size_t n = 0;
        while (n < common && text[n] == first[n])
            n++;
        common = n;
    }
    return common;
}

static uint64_t key_of(const struct text_order *o, const char *text)
{
    uint64_t key = 0;
    for (int shift = 56; shift >= 0 && *text != '\0'; shift -= 8, text++)
        key |= (uint64_t)(o->rank != NULL ? o->rank(*text) : (uint8_t)*text) << shift;
    return key;
}

static int compare(const void *a, const void *b, void *context)
{
    const struct text_order *o = context;
    const struct keyed *ka = a, *kb = b;
    if (ka->key != kb->key)
        return ka->key < kb->key ? -1 : 1;
    const int order = o->compare(o->context, ka->number, kb->number);
    return order != 0 ? order : (ka->number > kb->number) - (ka->number < kb->number);
}

static bool is_sorted(const struct text_order *o, const struct keyed *all, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (compare(&all[i - 1], &all[i], (void *)o) > 0)
            return false;
    }
    return true;
}

uint32_t *text_order_make(const struct text_order *o, uint32_t count)
{
    struct keyed *all = xcalloc((size_t)count + 1, sizeof *all);
    const size_t common = o->text != NULL && count > 0 ? common_length(o, count) : 0;
    for (uint32_t i = 0; i < count; i++) {
        all[i].number = i;
        all[i].key = o->text != NULL ? key_of(o, o->text(o->context, i) + common) : 0;
    }
    if (!is_sorted(o, all, count))
        qsort_r(all, count, sizeof *all, compare, (void *)o);
    uint32_t *order = xcalloc((size_t)count + 1, sizeof *order);
    for (uint32_t i = 0; i < count; i++)
        order[i] = all[i].number;
    free(all);
    return order;
}
