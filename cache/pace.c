#include "cache/pace.h"

#include <stdlib.h>

void pace_note(struct pace_side *s, uint64_t us, uint64_t now_ms)
{
    s->samples[s->count++ % PACE_SAMPLES] = (struct pace_sample){
        .at_ms = now_ms,
        .us = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX,
    };
}

static int by_size(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

uint64_t pace_latency_us(const struct pace_side *s, uint64_t since_ms)
{
    uint32_t sorted[PACE_SAMPLES];
    uint64_t known = s->count < PACE_SAMPLES ? s->count : PACE_SAMPLES;
    unsigned n = 0;
    for (uint64_t i = 0; i < known; i++) {
        if (s->samples[i].at_ms >= since_ms)
            sorted[n++] = s->samples[i].us;
    }
    if (n < PACE_LEAST)
        return 0;
    qsort(sorted, n, sizeof *sorted, by_size);
    uint32_t us = sorted[n * 9 / 10];
    return us > 0 ? us : 1;
}

static uint64_t before(uint64_t now_ms, uint64_t ms)
{
    return now_ms > ms ? now_ms - ms : 0;
}

/* 0: not known of this minute. */
static uint64_t store_latency_us(const struct pace_side *store, uint64_t now_ms)
{
    return pace_latency_us(store, before(now_ms, PACE_STORE_OLD_MS));
}

static void pace_try(struct pace *p, uint64_t store_us, uint64_t us)
{
    p->good = us <= store_us ? p->good + 1 : 0;
    if (p->good < PACE_TRIES)
        return;
    p->passed_by = false;
    p->reads.count = 0;
}

void pace_read(struct pace *p, const struct pace_side *store, uint64_t us, uint64_t now_ms)
{
    pace_note(&p->reads, us, now_ms);
    if (!p->passed_by && us < PACE_FAST_US)
        return; /* no fast read makes the directory a slow one */
    if (us >= PACE_FAST_US)
        p->slow_ms = now_ms;
    uint64_t store_us = store_latency_us(store, now_ms);
    if (store_us == 0)
        store_us = pace_latency_us(store, 0);
    if (p->passed_by) {
        pace_try(p, store_us, us);
        return;
    }
    uint64_t own_us = pace_latency_us(&p->reads, before(now_ms, PACE_SECOND_MS));
    if (own_us < PACE_FAST_US || store_us == 0 || own_us <= store_us)
        return;
    p->passed_by = true;
    p->good = 0;
    p->tried_ms = now_ms;
}

bool pace_passes_by(struct pace *p, const struct pace_side *store, uint64_t now_ms)
{
    if (p->passed_by) {
        if (now_ms - p->tried_ms < PACE_TRY_MS)
            return true;
        p->tried_ms = now_ms;
        return false;
    }
    uint64_t own_us = pace_latency_us(&p->reads, before(now_ms, PACE_SECOND_MS));
    if (own_us < PACE_BAD_US || store_latency_us(store, now_ms) != 0 ||
        now_ms - p->learnt_ms < PACE_TRY_MS / PACE_LEAST)
        return false;
    p->learnt_ms = now_ms;
    return true;
}

bool pace_near_begin(struct pace *p, uint64_t now_ms)
{
    const bool was_slow = p->slow_ms != 0 && now_ms - p->slow_ms < PACE_SECOND_MS;
    const bool waits = p->near > 0 && now_ms - p->moved_ms >= PACE_FAST_US / 1000;
    if (p->passed_by || was_slow || waits)
        return false;
    if (p->near++ == 0)
        p->moved_ms = now_ms;
    return true;
}

void pace_near_end(struct pace *p, uint64_t now_ms)
{
    p->near--;
    p->moved_ms = now_ms;
}
