/* Open files and directories: what is still open when the mount ends is closed then.  A signal may
 * end a mount before the kernel has released all handles. */
#pragma once

#include <pthread.h>

struct handle {
    struct handle *next, *previous;
    void (*close)(struct handle *h); /* without handles_remove() */
};

struct handles {
    pthread_mutex_t lock;
    struct handle *first;
};

void handles_init(struct handles *h);
void handles_done(struct handles *h); /* closes all */
void handles_add(struct handles *h, struct handle *one, void (*close)(struct handle *h));
void handles_remove(struct handles *h, struct handle *one);
