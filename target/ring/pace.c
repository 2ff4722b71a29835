#include "target/ring/pace.h"

enum { DOUBLINGS_MAX = 10 }; /* of the pause between steps that fail */

void ring_pace_wake(struct ring_pace *p)
{
    p->dirty = true;
}

void ring_pace_map_changed(struct ring_pace *p)
{
    p->dirty = true;
    p->failures = 0;
}

void ring_pace_begin(struct ring_pace *p, uint64_t now_ms)
{
    p->dirty = false;
    p->stepped_ms = now_ms;
}

void ring_pace_end(struct ring_pace *p, bool failed, bool again)
{
    p->failures = failed ? p->failures + (p->failures < DOUBLINGS_MAX) : 0;
    p->dirty = p->dirty || again;
}

uint64_t ring_pace_due_ms(const struct ring_pace *p, uint64_t interval_ms, uint64_t heartbeat_ms)
{
    const uint64_t soon_ms = interval_ms << (p->failures > 0 ? p->failures - 1 : 0);
    return p->stepped_ms + (p->dirty && soon_ms < heartbeat_ms ? soon_ms : heartbeat_ms);
}
