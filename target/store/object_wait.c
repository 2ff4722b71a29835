#include "target/store/object_wait.h"

#include "common/semaphores.h"

void object_wait_begin(struct object_wait *w)
{
    w->err = ERROR_INIT;
    sem_init(&w->ended, 0, 0);
}

void object_wait_done(void *arg, const struct attr *attr, const struct error *err)
{
    struct object_wait *w = arg;
    (void)attr;
    w->err = *err;
    sem_post(&w->ended);
}

int object_wait_end(struct object_wait *w, struct error *err)
{
    semaphore_wait(&w->ended);
    sem_destroy(&w->ended);
    if (w->err.code != 0 && err != NULL)
        *err = w->err;
    return w->err.code;
}

int object_put_commit_wait(struct object_put *p, struct error *err)
{
    struct object_wait w;
    object_wait_begin(&w);
    object_put_commit(p, object_wait_done, &w);
    return object_wait_end(&w, err);
}

int object_put_commit_as_wait(struct object_put *p, const struct object_moved *as,
                              const struct object_condition *condition, struct error *err)
{
    struct object_wait w;
    object_wait_begin(&w);
    object_put_commit_as(p, as, condition, object_wait_done, &w);
    return object_wait_end(&w, err);
}

int object_delete_wait(struct object_store *s, uint64_t bucket_id, const char *name,
                       enum durability durability, const struct object_condition *condition,
                       const struct object_held *earlier, struct error *err)
{
    struct object_wait w;
    object_wait_begin(&w);
    object_delete(s, bucket_id, name, durability, condition, earlier, object_wait_done, &w);
    return object_wait_end(&w, err);
}
