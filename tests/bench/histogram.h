/* Latencies in a fixed 15 KiB: buckets that grow with the value, 32 to each power of two, so that
 * a quantile is off by at most 3 %.  One per thread; added up afterwards. */
#pragma once

#include <stdint.h>

enum {
    HISTOGRAM_SUB_BITS = 5,
    HISTOGRAM_BUCKETS = (64 - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS,
};

struct histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t max;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t value);
void histogram_merge(struct histogram *into, const struct histogram *from);
/* The least upper bound of a bucket that at least `permille` thousandths of the values do not
 * exceed (never more than the greatest value seen); 0 when empty. */
uint64_t histogram_quantile(const struct histogram *h, unsigned permille);
