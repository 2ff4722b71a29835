#include "target/store/job_stop.h"

#include <errno.h>
#include <time.h>

#include "common/backoff.h"
#include "common/clock.h"
#include "common/condition.h"

void job_stop_init(struct job_stop *s)
{
    atomic_init(&s->wanted, false);
    pthread_mutex_init(&s->lock, NULL);
    condition_init(&s->changed);
}

void job_stop_done(struct job_stop *s)
{
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}

void job_stop_now(struct job_stop *s)
{
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->wanted, true);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

bool job_stop_pause(struct job_stop *s, uint64_t ms)
{
    const struct timespec until = clock_after(ms);
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    while (!s->wanted && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    bool go_on = !s->wanted;
    pthread_mutex_unlock(&s->lock);
    return go_on;
}

bool job_stop_back_off(struct job_stop *s, unsigned failures)
{
    static const struct backoff rule = {.first_ms = 50, .max_ms = 2000};
    return job_stop_pause(s, backoff_ms(&rule, failures));
}
