/* Threads of the program: named, and deaf to signals.
 *
 * Every signal is blocked in them but those of a thread's own faults (SIGSEGV and its kind), so
 * that SIGTERM goes to the main thread, which waits for it.  All threads are started here and
 * joined by who started them. */
#pragma once

#include <pthread.h>

#include "common/error.h"

/* `name` shows in ps and perf; its first 15 characters.  E_OVERLOAD where the system refuses. */
int thread_start(const char *name, void *(*fn)(void *arg), void *arg, pthread_t *out,
                 struct error *err);
