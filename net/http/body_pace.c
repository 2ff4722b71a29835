#include "net/http/body_pace.h"

bool body_pace_keeps(struct body_pace *p, const struct body_rate *rate, uint64_t now_ms,
                     size_t bytes)
{
    if (rate->bytes_per_s == 0)
        return true;
    if (!p->runs)
        *p = (struct body_pace){.began_ms = now_ms, .runs = true};
    p->bytes += bytes;
    uint64_t ms = now_ms - p->began_ms;
    if (ms < rate->window_ms)
        return true;
    bool keeps = (double)p->bytes * 1000 >= (double)rate->bytes_per_s * (double)ms;
    *p = (struct body_pace){.began_ms = now_ms, .runs = true};
    return keeps;
}

void body_pace_pause(struct body_pace *p)
{
    p->runs = false;
}
