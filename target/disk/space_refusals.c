#include "target/disk/space_refusals.h"

bool space_refusals_add(struct space_refusals *r, uint64_t now_ms, uint64_t *count)
{
    atomic_fetch_add(&r->count, 1);
    uint64_t next = atomic_load(&r->next_ms);
    if (now_ms < next ||
        !atomic_compare_exchange_strong(&r->next_ms, &next, now_ms + SPACE_REFUSALS_PAUSE_MS))
        return false;
    *count = atomic_exchange(&r->count, 0);
    return true;
}
