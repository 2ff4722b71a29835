#include "xaction/pace.h"

uint64_t pace_take(struct pace *p, uint64_t bytes, uint64_t now_ms)
{
    double rate = (double)p->rate_bytes_s / 1000;
    uint64_t passed_ms = now_ms > p->owed_ms ? now_ms - p->owed_ms : 0;
    double paid = (double)passed_ms * rate;
    p->owed_ms += passed_ms;
    p->owed_bytes = p->owed_bytes > paid ? p->owed_bytes - paid : 0;
    if (p->rate_bytes_s == 0) {
        p->owed_bytes = 0;
        return 0;
    }
    p->owed_bytes += (double)bytes;
    return (uint64_t)(p->owed_bytes / rate);
}
