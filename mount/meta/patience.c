#include "mount/meta/patience.h"

#include <time.h>

#include "common/backoff.h"
#include "common/clock.h"

void patience_back(struct patience *p)
{
    atomic_store(&p->away_since_ms, 0);
}

bool patience_wait(struct patience *p, unsigned failures)
{
    static const struct backoff pauses = {.first_ms = 2, .max_ms = 500};
    const uint64_t now = clock_ms();
    uint64_t since = 0;
    if (!atomic_compare_exchange_strong(&p->away_since_ms, &since, now) &&
        now >= since + META_AWAY_MS)
        return false;
    const uint64_t ms = backoff_ms(&pauses, failures);
    const struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
    return true;
}
