#include "tests/bench/histogram.h"

/* Values below 2^SUB_BITS have a bucket each; above, the leading bit chooses the group and the
 * SUB_BITS bits after it the bucket. */
static unsigned bucket_of(uint64_t value)
{
    if (value < (1u << HISTOGRAM_SUB_BITS))
        return (unsigned)value;
    unsigned top = 63 - (unsigned)__builtin_clzll(value);
    unsigned shift = top - HISTOGRAM_SUB_BITS;
    unsigned sub = (unsigned)(value >> shift) & ((1u << HISTOGRAM_SUB_BITS) - 1);
    return ((shift + 1) << HISTOGRAM_SUB_BITS) + sub;
}

static uint64_t bucket_upper(unsigned bucket)
{
    unsigned group = bucket >> HISTOGRAM_SUB_BITS;
    if (group == 0)
        return bucket;
    uint64_t sub = bucket & ((1u << HISTOGRAM_SUB_BITS) - 1);
    unsigned shift = group - 1;
    uint64_t lower = ((1ull << HISTOGRAM_SUB_BITS) + sub) << shift;
    return lower + ((1ull << shift) - 1);
}

void histogram_add(struct histogram *h, uint64_t value)
{
    h->count++;
    h->sum += value;
    if (value > h->max)
        h->max = value;
    h->buckets[bucket_of(value)]++;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    into->count += from->count;
    into->sum += from->sum;
    if (from->max > into->max)
        into->max = from->max;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

uint64_t histogram_quantile(const struct histogram *h, unsigned permille)
{
    uint64_t wanted = (h->count * permille + 999) / 1000;
    uint64_t seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen >= wanted && h->buckets[i] > 0) {
            uint64_t upper = bucket_upper(i);
            return upper < h->max ? upper : h->max;
        }
    }
    return h->max;
}
