#include "target/cold/rename_rule.h"

/* What a copy is made of: a question, its beginning and end, one to spare; and a step for each so
 * many bytes, of which backends do more at once, mostly. */
enum { REQUESTS = 4, STEP_MIB = 64 };

enum rename_way rename_way(const struct object_held *here, const struct object_held *earlier,
                           bool fresh)
{
    bool is_last =
        here->found && (!earlier->found || version_compare(&here->version, &earlier->version) >= 0);
    if (is_last && here->pending)
        return here->visible ? RENAME_HERE : RENAME_NOTHING;
    return is_last && here->visible && fresh ? RENAME_HERE : RENAME_THERE;
}

uint64_t rename_copy_ms(const struct rename_patience *p, uint64_t size)
{
    uint64_t requests = REQUESTS + size / ((uint64_t)STEP_MIB << 20), ms;
    if (__builtin_mul_overflow(p->try_ms, p->tries, &ms) ||
        __builtin_mul_overflow(ms, requests, &ms) || __builtin_add_overflow(ms, p->call_ms, &ms))
        return RENAME_COPY_MAX_MS;
    return ms < RENAME_COPY_MAX_MS ? ms : RENAME_COPY_MAX_MS;
}
