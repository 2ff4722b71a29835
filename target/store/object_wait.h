/* The end of a commit or deletion, for a caller that waits for it:
 *
 *   object_wait_begin(&w);
 *   object_delete(…, object_wait_done, &w);
 *   code = object_wait_end(&w, err); */
#pragma once

#include <semaphore.h>

#include "target/store/object.h"

struct object_wait {
    sem_t ended;
    struct error err;
};

void object_wait_begin(struct object_wait *w);
/* An object_done_fn; arg is the wait. */
void object_wait_done(void *arg, const struct attr *attr, const struct error *err);
/* Waits.  err is untouched by a success, and may be NULL. */
int object_wait_end(struct object_wait *w, struct error *err);
