/* A kind of job whose steps a test opens and closes one by one. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "xaction/xaction.h"

/* What it does is decided by the test, under one lock. */
struct fake_kind {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool may_prepare; /* prepare() waits for this */
    bool may_run;     /* run() waits for this or for a stop */
    bool stop_asked;
    bool leaves_error;                     /* steps that succeed fill their error all the same */
    int open_code, prepare_code, run_code; /* always */
    int commit_code, undo_code;            /* the first `bad_tries` times */
    int bad_tries;
    int prepares, runs, stops, commits, undos, frees;
    int moves; /* that the registry told of */
    const char *message;
};
extern struct fake_kind fake;

extern const struct xaction_ops *const fake_kinds[];
/* For xactions_new(). */
void fake_moved(void *host, const char *job_id);

/* As a test finds it: prepare() does not wait, run() does, and every step succeeds. */
void fake_reset(void);
void fake_let_prepare(void);
void fake_let_run(void);
/* One of its counters, under the lock. */
int fake_count(const int *counter);
