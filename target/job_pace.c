#include "target/job_pace.h"

#include "common/clock.h"

void job_pace_init(struct job_pace *p, uint64_t rate_bytes_s, struct job_stop *stop)
{
    *p = (struct job_pace){.pace = {.rate_bytes_s = rate_bytes_s}, .stop = stop};
    pthread_mutex_init(&p->lock, NULL);
}

void job_pace_done(struct job_pace *p)
{
    pthread_mutex_destroy(&p->lock);
}

uint64_t job_pace_take(struct job_pace *p, size_t bytes)
{
    pthread_mutex_lock(&p->lock);
    uint64_t wait_ms = pace_take(&p->pace, bytes, clock_ms());
    pthread_mutex_unlock(&p->lock);
    return wait_ms;
}
