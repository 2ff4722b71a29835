/* The CPU time of each thread of this process, also of those that have ended.  It is looked at
 * every 200 ms: of a thread that ends, what came after the last look is missing. */
#pragma once

#include "common/cleanup.h"

struct threads;

/* Begins to look.  NULL where the kernel does not say. */
struct threads *threads_new(void);
void threads_free(struct threads *t);
DEFINE_CLEANUP(struct threads, threads_free);
/* Ends the looking.  The busiest threads, one a line, with the time a record. */
void threads_print(struct threads *t, unsigned most, unsigned long long records);
