#include "mount/meta/patience.h"

#include <time.h>

#include "common/backoff.h"
#include "common/clock.h"

void patience_back(struct patience *p)
{
    atomic_store(&p->away_since_ms, 0);
}

bool patience_wait(struct patience *p, struct patience_call *call)
{
    static const struct backoff pauses = {.first_ms = 2, .max_ms = 500};
    const uint64_t now = clock_ms();
    uint64_t since = 0;
    if (call->failures++ == 0)
        call->since_ms = now;
    if (atomic_compare_exchange_strong(&p->away_since_ms, &since, now) || since > call->since_ms)
        since = call->since_ms;
    if (now >= since + p->most_ms)
        return false;
    const uint64_t ms = backoff_ms(&pauses, call->failures);
    const struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
    return true;
}
