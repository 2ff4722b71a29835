#include "mount/meta/group.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

/* In the queue of those that wait. */
struct group_link {
    struct group_link *next;
    struct group_request *request;
    sem_t done;
};

struct group {
    const struct group_ops *ops;
    void *context;
    struct group_request **taken; /* of the writer: `most` of them */
    pthread_t writer;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t waiting;
    struct group_link *first, **last;
    bool ends;
};

static size_t take(struct group *g)
{
    size_t count = 0;
    pthread_mutex_lock(&g->lock);
    while (g->first == NULL && !g->ends)
        pthread_cond_wait(&g->waiting, &g->lock);
    while (g->first != NULL && count < g->ops->most) {
        g->taken[count++] = g->first->request;
        g->first = g->first->next;
    }
    if (g->first == NULL)
        g->last = &g->first;
    pthread_mutex_unlock(&g->lock);
    return count;
}

static void fail(struct group_request *r, const struct error *err)
{
    r->rc = error_set(r->err, err->code, "%s", err->message);
}

static void write_alone(struct group *g, struct group_request *r)
{
    struct error err = ERROR_INIT;
    r->rc = 0;
    *r->err = ERROR_INIT;
    if (g->ops->write(g->context, &r, 1, &err) != 0 && r->rc == 0)
        fail(r, &err);
}

/* E_NET: each commit would wait for the server anew, one behind the other. */
static void serve(struct group *g, size_t count)
{
    struct error err = ERROR_INIT;
    int rc = g->ops->write(g->context, g->taken, count, &err);
    const bool may_be_one = rc != E_IN_DOUBT && rc != E_NET && count > 1;
    for (size_t i = 0; i < count && rc != 0; i++) {
        struct group_request *r = g->taken[i];
        if (may_be_one)
            write_alone(g, r);
        else if (r->rc == 0)
            fail(r, &err);
    }
    for (size_t i = 0; i < count; i++)
        sem_post(&g->taken[i]->link->done);
}

static void *writer(void *arg)
{
    struct group *g = arg;
    size_t count;
    while ((count = take(g)) > 0)
        serve(g, count);
    return NULL;
}

int group_commit(struct group *g, struct meta_commit *c, struct error *err)
{
    struct error own = ERROR_INIT;
    struct group_link link = {0};
    struct group_request r = {.commit = c, .err = &own, .link = &link};
    link.request = &r;
    sem_init(&link.done, 0, 0);
    pthread_mutex_lock(&g->lock);
    *g->last = &link;
    g->last = &link.next;
    pthread_cond_signal(&g->waiting);
    pthread_mutex_unlock(&g->lock);
    while (sem_wait(&link.done) != 0)
        continue;
    sem_destroy(&link.done);
    return r.rc == 0 ? 0 : error_set(err, r.rc, "%s", own.message);
}

static void free_group(struct group *g)
{
    pthread_cond_destroy(&g->waiting);
    pthread_mutex_destroy(&g->lock);
    free(g->taken);
    free(g);
}

int group_start(const struct group_ops *ops, void *context, struct group **out, struct error *err)
{
    sigset_t all, before;
    struct group *g = xcalloc(1, sizeof *g);
    *g = (struct group){.ops = ops, .context = context};
    g->taken = xcalloc(ops->most, sizeof(struct group_request *));
    g->last = &g->first;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->waiting, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = pthread_create(&g->writer, NULL, writer, g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum != 0) {
        free_group(g);
        return error_set(err, E_OVERLOAD, "thread: %s", strerror(errnum));
    }
    *out = g;
    return 0;
}

void group_end(struct group *g)
{
    if (g == NULL)
        return;
    pthread_mutex_lock(&g->lock);
    g->ends = true;
    pthread_cond_signal(&g->waiting);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->writer, NULL);
    free_group(g);
}
