#include "mount/program/restarts.h"

#include <assert.h>

void restarts_init(struct restarts *r, uint64_t limit)
{
    assert(limit <= RESTARTS_MAX);
    *r = (struct restarts){.limit = limit};
}

bool restarts_allow(struct restarts *r, uint64_t now_ms)
{
    if (r->limit == 0)
        return false;
    uint64_t *oldest = &r->at_ms[r->count % r->limit];
    if (r->count >= r->limit && now_ms - *oldest < RESTARTS_WINDOW_MS)
        return false;
    *oldest = now_ms;
    r->count++;
    return true;
}
