/* The loop's thread sits in uv_run().  A message is appended to a list under a lock and the loop
 * is woken by its async handle, whose handler takes the whole list and runs it in order.
 *
 * Stopping is itself a message: the handler runs what is left and closes the async handle, and
 * uv_run() returns when the last closing handle is gone.  Whoever puts a handle on the loop takes
 * it off before loop_free(); forgetting that would hang the program, so it is looked for. */
#include "io/loop.h"

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <uv.h>

#include "common/log.h"
#include "common/mem.h"
#include "io/thread.h"

struct loop_message {
    void (*fn)(void *arg);
    void *arg;
    struct loop_message *next;
};

struct loop {
    uv_loop_t uv;
    uv_async_t wake;
    pthread_t thread;
    bool stopping; /* the loop's thread only */

    pthread_mutex_t lock; /* guards the list; taken last, held for a few instructions */
    struct loop_message *first;
    struct loop_message **last;
};

struct loop_timer {
    uv_timer_t uv;
    void (*fn)(void *arg);
    void *arg;
};

static struct loop_message *loop_take_messages(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    struct loop_message *first = l->first;
    l->first = NULL;
    l->last = &l->first;
    pthread_mutex_unlock(&l->lock);
    return first;
}

static void loop_run_messages(struct loop_message *m)
{
    while (m != NULL) {
        struct loop_message *next = m->next;
        m->fn(m->arg);
        free(m);
        m = next;
    }
}

static void loop_require_closing(uv_handle_t *handle, void *wake)
{
    if (handle == wake || uv_is_closing(handle))
        return;
    log_error("a loop was freed with a handle open",
              lstr("handle", uv_handle_type_name(handle->type)));
    abort();
}

static void loop_on_wake(uv_async_t *wake)
{
    struct loop *l = wake->data;
    struct loop_message *messages = loop_take_messages(l);
    loop_run_messages(messages);
    if (!l->stopping)
        return;
    while ((messages = loop_take_messages(l)) != NULL)
        loop_run_messages(messages);
    uv_walk(&l->uv, loop_require_closing, wake);
    uv_close((uv_handle_t *)wake, NULL);
}

static void *loop_main(void *arg)
{
    struct loop *l = arg;
    uv_run(&l->uv, UV_RUN_DEFAULT);
    return NULL;
}

static int loop_init(struct loop *l, struct error *err)
{
    int rc = uv_loop_init(&l->uv);
    if (rc != 0)
        return error_errno(err, -rc, "create an event loop");
    rc = uv_async_init(&l->uv, &l->wake, loop_on_wake);
    if (rc != 0) {
        uv_loop_close(&l->uv);
        return error_errno(err, -rc, "create an event loop's wake-up");
    }
    l->wake.data = l;
    l->last = &l->first;
    pthread_mutex_init(&l->lock, NULL);
    return 0;
}

static void loop_done(struct loop *l)
{
    int rc = uv_loop_close(&l->uv);
    assert(rc == 0);
    (void)rc;
    pthread_mutex_destroy(&l->lock);
}

int loop_new(const char *thread_name, struct loop **out, struct error *err)
{
    struct loop *l = xcalloc(1, sizeof *l);
    int rc = loop_init(l, err);
    if (rc != 0) {
        free(l);
        return rc;
    }
    rc = thread_start(thread_name, loop_main, l, &l->thread, err);
    if (rc != 0) {
        uv_close((uv_handle_t *)&l->wake, NULL);
        uv_run(&l->uv, UV_RUN_DEFAULT);
        loop_done(l);
        free(l);
        return rc;
    }
    *out = l;
    return 0;
}

static void loop_stop(void *arg)
{
    struct loop *l = arg;
    l->stopping = true;
}

void loop_free(struct loop *l)
{
    if (l == NULL)
        return;
    assert(!loop_here(l));
    loop_post(l, loop_stop, l);
    pthread_join(l->thread, NULL);
    loop_done(l);
    free(l);
}

void loop_post(struct loop *l, void (*fn)(void *arg), void *arg)
{
    struct loop_message *m = xmalloc(sizeof *m);
    *m = (struct loop_message){.fn = fn, .arg = arg};
    /* The wake-up is sent under the lock: once the message can be seen it may be the one that lets
     * the loop's owner free the loop. */
    pthread_mutex_lock(&l->lock);
    *l->last = m;
    l->last = &m->next;
    uv_async_send(&l->wake);
    pthread_mutex_unlock(&l->lock);
}

struct loop_sync_call {
    void (*fn)(void *arg);
    void *arg;
    sem_t ended;
};

static void loop_run_sync(void *arg)
{
    struct loop_sync_call *call = arg;
    call->fn(call->arg);
    sem_post(&call->ended);
}

void loop_call(struct loop *l, void (*fn)(void *arg), void *arg)
{
    assert(!loop_here(l));
    struct loop_sync_call call = {.fn = fn, .arg = arg};
    sem_init(&call.ended, 0, 0);
    loop_post(l, loop_run_sync, &call);
    while (sem_wait(&call.ended) != 0)
        ; /* EINTR is the only failure of an initialised semaphore */
    sem_destroy(&call.ended);
}

bool loop_here(const struct loop *l)
{
    return pthread_equal(pthread_self(), l->thread);
}

uv_loop_t *loop_uv(struct loop *l)
{
    return &l->uv;
}

static void loop_timer_fired(uv_timer_t *uv)
{
    struct loop_timer *t = uv->data;
    t->fn(t->arg);
}

struct loop_timer *loop_timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
    struct loop_timer *t = xcalloc(1, sizeof *t);
    t->fn = fn;
    t->arg = arg;
    uv_timer_init(&l->uv, &t->uv);
    t->uv.data = t;
    return t;
}

void loop_timer_start(struct loop_timer *t, uint64_t delay_ms, uint64_t repeat_ms)
{
    uv_update_time(t->uv.loop); /* the delay counts from now, not from the last wake-up */
    uv_timer_start(&t->uv, loop_timer_fired, delay_ms, repeat_ms);
}

void loop_timer_stop(struct loop_timer *t)
{
    uv_timer_stop(&t->uv);
}

static void loop_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void loop_timer_free(struct loop_timer *t)
{
    if (t != NULL)
        uv_close((uv_handle_t *)&t->uv, loop_timer_closed);
}
