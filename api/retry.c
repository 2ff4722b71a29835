#include "api/retry.h"

#include "common/backoff.h"

/* Half of the pause is fixed and half is drawn ("equal jitter"), so that clients that failed
 * together come back apart, but never at once. */
static uint64_t retry_pause(const struct retry_policy *p, unsigned failures, uint64_t random)
{
    const struct backoff rule = {.first_ms = p->base_ms, .max_ms = p->cap_ms};
    return backoff_jitter(backoff_ms(&rule, failures), random);
}

/* The server's wish is a minimum; a little is added for the same reason.  Where the server goes on
 * asking for a short time, the pauses grow as without a wish. */
static uint64_t retry_wait(const struct retry_policy *p, unsigned failures,
                           const struct retry_question *q)
{
    uint64_t wish = q->retry_after_ms + q->random % (q->retry_after_ms / 4 + 1);
    uint64_t pause = retry_pause(p, failures, q->random);
    return wish > pause ? wish : pause;
}

static bool retry_allowed(const struct retry_question *q)
{
    switch (q->outcome) {
    case RETRY_UNSENT:
    case RETRY_REFUSED:
        return true;
    case RETRY_BROKEN:
        return q->twice_is_harmless;
    case RETRY_NEVER:
        return false;
    }
    return false;
}

bool retry_next(const struct retry_policy *p, struct retry_state *s, const struct retry_question *q,
                uint64_t *wait_ms)
{
    s->failures++;
    if (!retry_allowed(q))
        return false;
    if (q->outcome == RETRY_UNSENT && q->other_endpoint) {
        s->failures--; /* a round over all endpoints counts as one try */
        *wait_ms = 0;
        return true;
    }
    if (s->failures >= p->attempts)
        return false;
    *wait_ms = retry_wait(p, s->failures, q);
    return q->now_ms - s->since_ms + *wait_ms <= p->budget_ms;
}

void retry_progress(struct retry_state *s, uint64_t now_ms)
{
    s->failures = 0;
    s->since_ms = now_ms;
}
