/* Blocks on their way to the store: a few threads put them side by side. */
#pragma once

#include <pthread.h>

#include "mount/volfs/store.h"

struct upload {
    struct upload *next;
    char *key;         /* malloc'ed, of the upload */
    char *data;        /* as well; freed when it is stored */
    size_t size, room; /* room: what `data` counts */
    bool busy;         /* the lock of uploads; so is rc */
    int rc;
};

struct uploads;

/* `bytes` counts the room of data; what is stored counts no more.  NULL: there is no thread. */
struct uploads *uploads_new(const struct volfs_store *store, unsigned threads,
                            _Atomic uint64_t *bytes);
/* Nothing may be on its way.  NULL is fine. */
void uploads_free(struct uploads *u);

/* Waits while as many as there are threads are on their way. */
void uploads_put(struct uploads *u, struct upload *one);
/* Until it has ended: 0 or -errno. */
int uploads_wait(struct uploads *u, struct upload *one);
/* Ended, and failed. */
bool uploads_has_failed(struct uploads *u, struct upload *one);
