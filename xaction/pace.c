#include "xaction/pace.h"

uint64_t pace_take(struct pace *p, uint64_t bytes, uint64_t now_ms)
{
    if (p->rate_bytes_s == 0)
        return 0;
    if (p->due_ms < (double)now_ms)
        p->due_ms = (double)now_ms;
    p->due_ms += (double)bytes * 1000 / (double)p->rate_bytes_s;
    return (uint64_t)(p->due_ms - (double)now_ms);
}
