/* A put's commit, for a caller that waits for its end. */
#include <semaphore.h>

#include "target/store/object.h"

struct put_wait {
    sem_t ended;
    struct error err;
};

static void put_wait_done(void *arg, const struct attr *attr, const struct error *err)
{
    struct put_wait *w = arg;
    (void)attr;
    w->err = *err;
    sem_post(&w->ended);
}

static int put_wait_end(struct put_wait *w, struct error *err)
{
    while (sem_wait(&w->ended) != 0)
        ; /* EINTR is the only failure of an initialised semaphore */
    sem_destroy(&w->ended);
    if (w->err.code != 0 && err != NULL)
        *err = w->err;
    return w->err.code;
}

int object_put_commit_wait(struct object_put *p, struct error *err)
{
    struct put_wait w = {.err = ERROR_INIT};
    sem_init(&w.ended, 0, 0);
    object_put_commit(p, put_wait_done, &w);
    return put_wait_end(&w, err);
}

int object_put_commit_as_wait(struct object_put *p, const struct object_moved *as,
                              const struct object_condition *condition, struct error *err)
{
    struct put_wait w = {.err = ERROR_INIT};
    sem_init(&w.ended, 0, 0);
    object_put_commit_as(p, as, condition, put_wait_done, &w);
    return put_wait_end(&w, err);
}
