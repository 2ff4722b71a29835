/* Is a cache directory faster than what is below it?  Pure.
 *
 * A tier's latency is the 90th percentile of its reads: of the last second of a directory, of the
 * last minute of the store.  A directory is passed by while its latency is worse than the store's.
 * One that is fast is used in any case, since that spares the store.
 *
 * Now and then a read tries a directory that is passed by.  After a few that were as fast as the
 * store it is used again.  The store is not asked while all reads hit: so of a directory that is
 * very slow a read now and then is left to the store, to learn its latency.
 *
 * The caller holds a lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PACE_SAMPLES 64
#define PACE_SECOND_MS 1000     /* a directory's samples are used for so long */
#define PACE_LEAST 8            /* with fewer samples nothing is decided */
#define PACE_TRY_MS 500         /* between reads that try */
#define PACE_TRIES 4            /* in a row that were fast: it is used again */
#define PACE_FAST_US 50000      /* below, a directory is fast */
#define PACE_BAD_US 200000      /* above, the store is asked if its latency is not known */
#define PACE_STORE_OLD_MS 60000 /* the store's latency is asked for anew */

struct pace_side {
    struct pace_sample {
        uint64_t at_ms;
        uint32_t us;
    } samples[PACE_SAMPLES];
    uint64_t count; /* of all times */
};

void pace_note(struct pace_side *s, uint64_t us, uint64_t now_ms);
/* Of samples since then: in microseconds, 0 where they are fewer than PACE_LEAST. */
uint64_t pace_latency_us(const struct pace_side *s, uint64_t since_ms);

struct pace {
    struct pace_side reads; /* of the directory */
    bool passed_by;
    unsigned good;      /* tries in a row */
    uint64_t tried_ms;  /* the last read that tried */
    uint64_t learnt_ms; /* the last read that was left to the store */
    uint64_t slow_ms;   /* the last read that was not fast; 0: none */
    unsigned near;      /* reads between pace_near_begin() and its end … */
    uint64_t moved_ms;  /* … of which one began or ended last */
};

/* Takes the directory's read into account. */
void pace_read(struct pace *p, const struct pace_side *store, uint64_t us, uint64_t now_ms);
/* Should the next read pass the directory by? */
bool pace_passes_by(struct pace *p, const struct pace_side *store, uint64_t now_ms);

/* May a reader wait for the directory itself, where nobody can interrupt it?  Only if no read of
 * the last second was slow, and if no such reader waits for long.  True: its end follows. */
bool pace_near_begin(struct pace *p, uint64_t now_ms);
void pace_near_end(struct pace *p, uint64_t now_ms);
