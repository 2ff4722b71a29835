#include "target/lanes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "hrw/hrw.h"
#include "io/pool.h"

enum { SLOTS = 1024 };

struct task {
    void (*fn)(void *arg);
    void *arg;
    struct task *next;
};

struct lane {
    struct lanes *all;
    struct lane *next; /* in its slot */
    uint64_t bucket_id;
    char *name;
    struct task *first, **last; /* the first one runs */
};

struct lanes {
    struct pool *pool;
    pthread_mutex_t lock;
    struct lane *slots[SLOTS];
};

struct lanes *lanes_new(struct pool *pool)
{
    struct lanes *l = xcalloc(1, sizeof *l);
    l->pool = pool;
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void lanes_free(struct lanes *l)
{
    if (l == NULL)
        return;
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* Where the name's lane is, or would be.  With the lock. */
static struct lane **find(struct lanes *l, uint64_t bucket_id, const char *name)
{
    struct lane **at = &l->slots[hrw_key(bucket_id, name, strlen(name)) % SLOTS];
    while (*at != NULL && ((*at)->bucket_id != bucket_id || strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    return at;
}

static struct lane *lane_new(struct lanes *l, uint64_t bucket_id, const char *name)
{
    struct lane *lane = xcalloc(1, sizeof *lane);
    *lane = (struct lane){.all = l, .bucket_id = bucket_id, .name = xstrdup(name)};
    lane->last = &lane->first;
    return lane;
}

static void lane_free(struct lane *lane)
{
    free(lane->name);
    free(lane);
}

/* The first task has ended.  The next one; NULL: the lane is gone. */
static struct task *step(struct lane *lane)
{
    struct lanes *l = lane->all;
    pthread_mutex_lock(&l->lock);
    struct task *ended = lane->first, *next = ended->next;
    lane->first = next;
    if (next == NULL) {
        struct lane **at = find(l, lane->bucket_id, lane->name);
        *at = lane->next;
    }
    pthread_mutex_unlock(&l->lock);
    free(ended);
    if (next == NULL)
        lane_free(lane);
    return next;
}

/* All of them: who waits for a name does not wait for the pool, too. */
static void lane_run(void *arg)
{
    struct lane *lane = arg;
    struct task *task = lane->first;
    do
        task->fn(task->arg);
    while ((task = step(lane)) != NULL);
}

static int submit_locked(struct lanes *l, uint64_t bucket_id, const char *name, struct task *task,
                         struct error *err)
{
    struct lane **at = find(l, bucket_id, name), *lane = *at;
    if (lane != NULL) {
        *lane->last = task;
        lane->last = &task->next;
        return 0;
    }
    lane = lane_new(l, bucket_id, name);
    lane->first = task;
    lane->last = &task->next;
    int code = pool_submit(l->pool, lane_run, lane, err);
    if (code == 0)
        *at = lane;
    else
        lane_free(lane);
    return code;
}

int lanes_submit(struct lanes *l, uint64_t bucket_id, const char *name, void (*fn)(void *arg),
                 void *arg, struct error *err)
{
    struct task *task = xcalloc(1, sizeof *task);
    *task = (struct task){.fn = fn, .arg = arg};
    pthread_mutex_lock(&l->lock);
    int code = submit_locked(l, bucket_id, name, task, err);
    pthread_mutex_unlock(&l->lock);
    if (code != 0)
        free(task);
    return code;
}

bool lanes_busy(struct lanes *l, uint64_t bucket_id, const char *name)
{
    pthread_mutex_lock(&l->lock);
    bool busy = *find(l, bucket_id, name) != NULL;
    pthread_mutex_unlock(&l->lock);
    return busy;
}
