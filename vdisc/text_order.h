/* The order of things that have a text.  Most comparisons look at 8 bytes of each text, side by
 * side, in place of two texts that are anywhere in memory.  Pure. */
#pragma once

#include <stdint.h>

struct text_order {
    const char *(*text)(const void *context, uint32_t i); /* NULL: `compare` decides alone */
    /* What a byte counts in an order of texts; only the end counts 0.  NULL: the byte itself. */
    uint8_t (*rank)(char c);
    /* Of two texts that differ it says what their ranks say. */
    int (*compare)(const void *context, uint32_t a, uint32_t b);
    const void *context;
};

/* The numbers below `count` in order, malloc'ed; of equal ones the lower number comes first. */
uint32_t *text_order_make(const struct text_order *o, uint32_t count);
