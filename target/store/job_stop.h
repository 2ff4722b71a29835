/* The word that a job shall end, and pauses that it ends.  Any thread. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct job_stop {
    atomic_bool wanted; /* for functions that only look now and then */
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

void job_stop_init(struct job_stop *s);
void job_stop_done(struct job_stop *s);
void job_stop_now(struct job_stop *s);
/* False where the job shall end. */
bool job_stop_pause(struct job_stop *s, uint64_t ms);
/* The pause after so many failures in a row of one thing: 50 ms, twice as long each time, at most
 * 2 s.  False where the job shall end. */
bool job_stop_back_off(struct job_stop *s, unsigned failures);
