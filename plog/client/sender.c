/* An object that could not be stored stays in the list, and is stored again by the next call that
 * waits for it.  So a caller that repeats a failed sync loses nothing. */
#include "plog/client/sender.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct item {
    const struct plog_store *store;
    char name[PLOG_NAME_MAX];
    struct buf body;    /* freed as soon as it is stored */
    atomic_size_t held; /* bytes of it */
    pthread_t thread;
    bool has_thread;
    int code; /* of the last try */
    struct error err;
    struct item *next;
};

struct sender {
    struct plog_store store;
    unsigned most, count;
    struct item *first, **end;
};

struct sender *sender_new(const struct plog_store *st, unsigned most)
{
    struct sender *s = xcalloc(1, sizeof *s);
    s->store = *st;
    s->most = most;
    s->end = &s->first;
    return s;
}

static void *store_item(void *ctx)
{
    struct item *i = ctx;
    char etag[PLOG_ETAG_MAX];
    i->err = ERROR_INIT;
    i->code = i->store->put(i->store->ctx, i->name, i->body.data, i->body.len, NULL, etag, &i->err);
    if (i->code == 0) {
        buf_done(&i->body);
        i->held = 0;
    }
    return NULL;
}

/* Signals are for the program's threads. */
static bool start(struct item *i)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    i->has_thread = pthread_create(&i->thread, NULL, store_item, i) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return i->has_thread;
}

static void await(struct item *i)
{
    if (i->has_thread)
        pthread_join(i->thread, NULL);
    i->has_thread = false;
}

static void remove_item(struct sender *s, struct item **at)
{
    struct item *i = *at;
    *at = i->next;
    if (s->end == &i->next)
        s->end = at;
    s->count--;
    buf_done(&i->body);
    free(i);
}

/* The object is durable, and leaves the list; or the second try has failed, too. */
static int settle(struct sender *s, struct item **at, struct error *err)
{
    struct item *i = *at;
    await(i);
    if (i->code != 0)
        store_item(i);
    if (i->code == 0) {
        remove_item(s, at);
        return 0;
    }
    error_wrap(&i->err, "store '%s'", i->name);
    if (err != NULL)
        *err = i->err;
    return i->code;
}

int sender_send(struct sender *s, const char *name, struct buf *body, struct error *err)
{
    if (s->count >= s->most) {
        const int code = settle(s, &s->first, err);
        if (code != 0)
            return code;
    }
    struct item *i = xcalloc(1, sizeof *i);
    i->store = &s->store;
    snprintf(i->name, sizeof i->name, "%s", name);
    i->body = *body;
    *body = BUF_INIT;
    i->held = i->body.len;
    *s->end = i;
    s->end = &i->next;
    s->count++;
    if (!start(i))
        store_item(i);
    return 0;
}

int sender_flush(struct sender *s, struct error *err)
{
    int code = 0;
    for (struct item **at = &s->first; *at != NULL;) {
        struct item *i = *at;
        const int rc = settle(s, at, code == 0 ? err : NULL);
        code = code == 0 ? rc : code;
        if (rc != 0)
            at = &i->next;
    }
    return code;
}

size_t sender_bytes(const struct sender *s)
{
    size_t bytes = 0;
    for (const struct item *i = s->first; i != NULL; i = i->next)
        bytes += i->held;
    return bytes;
}

void sender_free(struct sender *s)
{
    if (s == NULL)
        return;
    while (s->first != NULL) {
        await(s->first);
        remove_item(s, &s->first);
    }
    free(s);
}
