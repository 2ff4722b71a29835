#include "target/store/name_queue.h"

#include <pthread.h>
#include <string.h>

#include "common/mem.h"
#include "common/semaphores.h"
#include "io/pool.h"
#include "target/store/name_table.h"

enum { SLOTS = 1024 };

struct turn {
    struct turn *next;
    void (*fn)(void *arg);
    void *arg;
};

/* Who has come for one name; there while any has. */
struct line {
    struct name_entry entry;
    struct name_queue *turns;
    struct turn *first, **last;
    char name[];
};

struct name_queue {
    struct pool *pool;
    size_t most;
    pthread_mutex_t lock; /* of what follows */
    size_t count;
    struct name_table lines;
};

struct name_queue *name_queue_new(struct pool *pool, size_t most)
{
    struct name_queue *t = xcalloc(1, sizeof *t);
    t->pool = pool;
    t->most = most;
    name_table_init(&t->lines, SLOTS);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void name_queue_free(struct name_queue *t)
{
    if (t == NULL)
        return;
    pthread_mutex_destroy(&t->lock);
    name_table_done(&t->lines);
    free(t);
}

static struct line *find(const struct name_queue *t, uint64_t bucket_id, const char *name)
{
    return (struct line *)name_table_find(&t->lines, bucket_id, name);
}

/* The next one's turn; NULL: nobody waits, and the line is gone. */
static struct turn *take_first(struct line *l)
{
    struct name_queue *t = l->turns;
    pthread_mutex_lock(&t->lock);
    struct turn *turn = l->first;
    if (turn != NULL) {
        l->first = turn->next;
        if (l->first == NULL)
            l->last = &l->first;
        t->count--;
    } else {
        name_table_remove(&t->lines, &l->entry);
    }
    pthread_mutex_unlock(&t->lock);
    if (turn == NULL)
        free(l);
    return turn;
}

static void run(void *arg)
{
    struct line *l = arg;
    for (struct turn *turn; (turn = take_first(l)) != NULL;) {
        turn->fn(turn->arg);
        free(turn);
    }
}

static struct line *line_new(struct name_queue *t, const char *name)
{
    size_t len = strlen(name);
    struct line *l = xcalloc(1, sizeof *l + len + 1);
    l->turns = t;
    l->last = &l->first;
    memcpy(l->name, name, len + 1);
    return l;
}

static void append(struct line *l, struct turn *turn)
{
    *l->last = turn;
    l->last = &turn->next;
    l->turns->count++;
}

/* With the lock held.  A new line is run by the pool. */
static int enter_locked(struct name_queue *t, uint64_t bucket_id, const char *name,
                        struct turn *turn, struct error *err)
{
    if (t->count >= t->most)
        return error_set(err, E_OVERLOAD, "%zu writes wait for their turn, the limit", t->count);
    struct line *l = find(t, bucket_id, name);
    if (l != NULL) {
        append(l, turn);
        return 0;
    }
    l = line_new(t, name);
    int code = pool_submit(t->pool, run, l, err); /* it begins when the lock is free */
    if (code != 0) {
        free(l);
        return code;
    }
    name_table_add(&t->lines, &l->entry, bucket_id, l->name);
    append(l, turn);
    return 0;
}

int name_queue_enter(struct name_queue *t, uint64_t bucket_id, const char *name,
                     void (*fn)(void *arg), void *arg, struct error *err)
{
    struct turn *turn = xcalloc(1, sizeof *turn);
    *turn = (struct turn){.fn = fn, .arg = arg};
    pthread_mutex_lock(&t->lock);
    int code = enter_locked(t, bucket_id, name, turn, err);
    pthread_mutex_unlock(&t->lock);
    if (code != 0)
        free(turn);
    return code;
}

bool name_queue_busy(struct name_queue *t, uint64_t bucket_id, const char *name)
{
    pthread_mutex_lock(&t->lock);
    bool busy = find(t, bucket_id, name) != NULL;
    pthread_mutex_unlock(&t->lock);
    return busy;
}

struct awaited {
    sem_t over;
    void (*fn)(void *arg);
    void *arg;
};

static void run_awaited(void *arg)
{
    struct awaited *w = arg;
    w->fn(w->arg);
    sem_post(&w->over);
}

int name_queue_run(struct name_queue *t, uint64_t bucket_id, const char *name,
                   void (*fn)(void *arg), void *arg, struct error *err)
{
    struct awaited w = {.fn = fn, .arg = arg};
    sem_init(&w.over, 0, 0);
    int code = name_queue_enter(t, bucket_id, name, run_awaited, &w, err);
    if (code == 0)
        semaphore_wait(&w.over);
    sem_destroy(&w.over);
    return code;
}

static void do_nothing(void *arg)
{
    (void)arg;
}

int name_queue_await(struct name_queue *t, uint64_t bucket_id, const char *name, struct error *err)
{
    return name_queue_run(t, bucket_id, name, do_nothing, NULL, err);
}
