/* Semaphores of threads that wait for an end elsewhere. */
#pragma once

#include <semaphore.h>

/* Waits for one post.  An interruption is the only failure of an initialised semaphore. */
static inline void semaphore_wait(sem_t *s)
{
    while (sem_wait(s) != 0)
        continue;
}
