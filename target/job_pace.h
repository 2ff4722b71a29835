/* A job's rate (xaction/pace.h) among its threads, and the word that it shall end. */
#pragma once

#include "target/job_stop.h"
#include "xaction/pace.h"

struct job_pace {
    pthread_mutex_t lock; /* of the pace */
    struct pace pace;
    struct job_stop *stop; /* the job's */
};

void job_pace_init(struct job_pace *p, uint64_t rate_bytes_s, struct job_stop *stop);
void job_pace_done(struct job_pace *p);
/* How long to wait until the bytes are paid for. */
uint64_t job_pace_take(struct job_pace *p, size_t bytes);
