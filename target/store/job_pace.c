#include "target/store/job_pace.h"

#include "common/clock.h"

enum { SLICE_MS = 500 }; /* so soon another rate is in force */

void job_pace_init(struct job_pace *p, uint64_t rate_bytes_s, struct job_stop *stop)
{
    *p = (struct job_pace){.pace = {.rate_bytes_s = rate_bytes_s}, .stop = stop};
    pthread_mutex_init(&p->lock, NULL);
}

void job_pace_init_by(struct job_pace *p, uint64_t (*rate)(void *ctx), void *ctx,
                      struct job_stop *stop)
{
    job_pace_init(p, 0, stop);
    p->rate = rate;
    p->ctx = ctx;
}

void job_pace_done(struct job_pace *p)
{
    pthread_mutex_destroy(&p->lock);
}

uint64_t job_pace_rate(const struct job_pace *p)
{
    return p->rate != NULL ? p->rate(p->ctx) : p->pace.rate_bytes_s;
}

uint64_t job_pace_take(struct job_pace *p, uint64_t bytes)
{
    uint64_t rate = job_pace_rate(p);
    pthread_mutex_lock(&p->lock);
    if (p->rate != NULL)
        p->pace.rate_bytes_s = rate;
    uint64_t wait_ms = pace_take(&p->pace, bytes, clock_ms());
    pthread_mutex_unlock(&p->lock);
    return wait_ms;
}

bool job_pace_wait(struct job_pace *p, uint64_t bytes)
{
    uint64_t wait_ms;
    for (; (wait_ms = job_pace_take(p, bytes)) > 0; bytes = 0) {
        if (!job_stop_pause(p->stop, wait_ms < SLICE_MS ? wait_ms : SLICE_MS))
            return false;
    }
    return !p->stop->wanted;
}
