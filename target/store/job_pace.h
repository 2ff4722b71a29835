/* A job's rate (xaction/pace.h) among its threads, and the word that it shall end. */
#pragma once

#include "target/store/job_stop.h"
#include "xaction/pace.h"

struct job_pace {
    pthread_mutex_t lock; /* of the pace */
    struct pace pace;
    struct job_stop *stop; /* the job's */
    /* The rate that is in force now; NULL: that of the beginning. */
    uint64_t (*rate)(void *ctx);
    void *ctx;
};

void job_pace_init(struct job_pace *p, uint64_t rate_bytes_s, struct job_stop *stop);
/* By a rate that changes. */
void job_pace_init_by(struct job_pace *p, uint64_t (*rate)(void *ctx), void *ctx,
                      struct job_stop *stop);
void job_pace_done(struct job_pace *p);
/* How long to wait until the bytes are paid for. */
uint64_t job_pace_take(struct job_pace *p, uint64_t bytes);
/* Waits so long.  False where the job shall end. */
bool job_pace_wait(struct job_pace *p, uint64_t bytes);
/* The rate that is in force; 0: no limit. */
uint64_t job_pace_rate(const struct job_pace *p);
