#include "common/backoff.h"

uint64_t backoff_ms(const struct backoff *b, unsigned failures)
{
    uint64_t ms = b->first_ms;
    for (unsigned i = 1; i < failures && ms > 0 && ms < b->max_ms; i++)
        ms = ms <= b->max_ms / 2 ? 2 * ms : b->max_ms;
    return ms < b->max_ms ? ms : b->max_ms;
}

uint64_t backoff_jitter(uint64_t ms, uint64_t luck)
{
    return ms - luck % (ms / 2 + 1);
}
