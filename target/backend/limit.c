#include "target/backend/limit.h"

enum { ONE = 1000 };

void limit_init(struct limit *l)
{
    *l = (struct limit){.thousandths = (uint64_t)LIMIT_MAX * ONE};
}

unsigned limit_now(const struct limit *l)
{
    return (unsigned)(l->thousandths / ONE);
}

void limit_answered(struct limit *l)
{
    const uint64_t most = (uint64_t)LIMIT_MAX * ONE;
    l->thousandths += (uint64_t)ONE * ONE / l->thousandths;
    if (l->thousandths > most)
        l->thousandths = most;
}

void limit_refused(struct limit *l, unsigned cuts, unsigned running)
{
    uint64_t used = (uint64_t)running * ONE;
    if (cuts != l->cuts)
        return;
    if (used < l->thousandths)
        l->thousandths = used;
    l->thousandths /= 2;
    if (l->thousandths < ONE)
        l->thousandths = ONE;
    l->cuts++;
}
