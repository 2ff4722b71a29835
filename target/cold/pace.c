/* How fast a fetch comes: as slowly as its job wants it, and no slower than its backend may be.  A
 * thread that waits for a slow one is not to be had for others. */
#include "target/cold/internal.h"

#include "common/clock.h"
#include "target/store/job_pace.h"

enum { PACE_SLICE_MS = 50 };

bool fetch_is_unwanted(struct fetch *f)
{
    pthread_mutex_lock(&f->lock);
    bool nobody = f->waiters == NULL && f->readers == 0;
    pthread_mutex_unlock(&f->lock);
    return nobody;
}

void cold_pace_pause(struct cold_pace *pace)
{
    body_pace_pause(&pace->least);
    body_pace_pause(&pace->left);
}

bool cold_pace_wait(struct fetch *f, struct cold_pace *pace, size_t bytes)
{
    if (f->pace == NULL || !fetch_is_unwanted(f))
        return true;
    uint64_t left_ms = job_pace_take(f->pace, bytes);
    if (left_ms > 0)
        cold_pace_pause(pace);
    do {
        uint64_t slice_ms = left_ms < PACE_SLICE_MS ? left_ms : PACE_SLICE_MS;
        if (!job_stop_pause(f->pace->stop, slice_ms))
            return !fetch_is_unwanted(f);
        left_ms -= slice_ms;
    } while (left_ms > 0 && fetch_is_unwanted(f));
    return true;
}

/* Nobody waits for it, nor will: who wants the object from now on begins another one. */
static bool is_left(struct fetch *f)
{
    struct cold *c = f->cold;
    pthread_mutex_lock(&c->lock);
    bool left = atomic_load(&f->refs) == 1; /* the table's, which is this thread's */
    if (left)
        atomic_store(&f->overtaken, true);
    pthread_mutex_unlock(&c->lock);
    return left;
}

int cold_pace_check(struct fetch *f, struct cold_pace *pace, size_t bytes, struct error *err)
{
    const struct target_params *p = &f->cold->target->params;
    const struct body_rate left = {p->backend_left_rate, p->backend_min_time};
    const struct body_rate least = {p->backend_min_rate, p->backend_min_time};
    uint64_t now_ms = clock_ms();
    bool fast = body_pace_keeps(&pace->least, &least, now_ms, bytes);
    if (!fast)
        return error_set(err, E_BACKEND_TIMEOUT,
                         "the backend's answer comes at less than %llu bytes a second",
                         (unsigned long long)least.bytes_per_s);
    if (body_pace_keeps(&pace->left, &left, now_ms, bytes) || !is_left(f))
        return 0;
    return error_set(err, E_BACKEND_TIMEOUT,
                     "no client waits for it, and it arrives at less than %llu bytes a second",
                     (unsigned long long)left.bytes_per_s);
}
