/* A process that serves, and another one in its place when it has died.
 *
 * SIGTERM, SIGINT and SIGHUP are passed on to it.  The caller has one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct supervised {
    /* In a process of its own; the exit code, see program.h. */
    int (*serve)(void *context);
    /* Called when a process has begun, in this one. */
    void (*started)(void *context);
    /* Could another process go on where this one ended? */
    bool (*can_go_on)(void *context);
    void *context;
    uint64_t restarts; /* of a minute; up to RESTARTS_MAX */
};

/* Until serve() has returned PROGRAM_OK, or nothing can go on: the exit code, or minus the signal
 * that ended the last process. */
int supervisor_run(const struct supervised *what);
bool supervisor_was_stopped(void); /* a signal asked for the end */
