#include "proxy/push/push_text.h"

#include <string.h>

#include "cluster/documents/push_body.h"
#include "common/mem.h"
#include "io/pool.h"

struct waiter {
    struct waiter *next;
    void (*fn)(void *arg, struct push_text *text, const struct error *err);
    void *arg;
};

/* `data` and `len` are the worker's until it has posted the text; all else is the loop's. */
struct push_text {
    struct push_texts *owner; /* while the worker has it */
    struct push_text *next;
    unsigned refs;
    const struct cluster_state *from; /* NULL: whole */
    const struct cluster_state *to;
    char *data;
    size_t len;
    bool made;
    struct waiter *waiters;
};

struct push_texts {
    struct loop *loop;
    struct pool *pool;
    struct push_text *texts; /* a reference to each: all to `newest`, and those not made yet */
    const struct cluster_state *newest; /* only compared */
    unsigned making;
    bool freed; /* the last text that comes from the worker takes it along */
};

struct push_texts *push_texts_new(struct loop *loop, struct pool *pool)
{
    struct push_texts *pt = xcalloc(1, sizeof *pt);
    pt->loop = loop;
    pt->pool = pool;
    return pt;
}

const char *push_text_data(const struct push_text *t)
{
    return t->data;
}

size_t push_text_len(const struct push_text *t)
{
    return t->len;
}

void push_text_drop(struct push_text *t)
{
    if (--t->refs > 0)
        return;
    state_unref(t->from);
    state_unref(t->to);
    free(t->data);
    free(t);
}

/* Each waiter gets a reference; a text that was not made goes to nobody. */
static void tell(struct push_text *t, const struct error *err)
{
    struct waiter *list = steal(t->waiters);
    while (list != NULL) {
        struct waiter *w = list;
        list = w->next;
        t->refs += err == NULL;
        w->fn(w->arg, err == NULL ? t : NULL, err);
        free(w);
    }
}

/* --- making ---------------------------------------------------------------------------------- */

/* Drops the texts of earlier states for which nobody waits any more. */
static void forget_earlier(struct push_texts *pt)
{
    for (struct push_text **at = &pt->texts; *at != NULL;) {
        struct push_text *t = *at;
        if (t->to == pt->newest || !t->made) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        push_text_drop(t);
    }
}

static void made(void *arg)
{
    struct push_text *t = arg;
    struct push_texts *pt = t->owner;
    t->made = true;
    tell(t, NULL);
    push_text_drop(t);
    forget_earlier(pt);
    if (--pt->making == 0 && pt->freed)
        free(pt);
}

/* In the worker. */
static void make(void *arg)
{
    struct push_text *t = arg;
    t->data = push_body_text(t->from, t->to);
    t->len = strlen(t->data);
    loop_post(t->owner->loop, made, t);
}

static void add_waiter(struct push_text *t,
                       void (*fn)(void *arg, struct push_text *text, const struct error *err),
                       void *arg)
{
    struct waiter *w = xmalloc(sizeof *w);
    *w = (struct waiter){.next = t->waiters, .fn = fn, .arg = arg};
    t->waiters = w;
}

/* --- asking ---------------------------------------------------------------------------------- */

static struct push_text *find(const struct push_texts *pt, const struct cluster_state *from,
                              const struct cluster_state *to)
{
    struct push_text *t = pt->texts;
    while (t != NULL && (t->from != from || t->to != to))
        t = t->next;
    return t;
}

static struct push_text *text_new(struct push_texts *pt, const struct cluster_state *from,
                                  const struct cluster_state *to)
{
    struct push_text *t = xcalloc(1, sizeof *t);
    *t = (struct push_text){.owner = pt,
                            .next = pt->texts,
                            .refs = 2, /* the list's and the worker's */
                            .from = from != NULL ? state_ref(from) : NULL,
                            .to = state_ref(to)};
    pt->texts = t;
    pt->making++;
    return t;
}

/* The worker has no room for the text that was just put into the list. */
static void take_back(struct push_texts *pt, struct push_text *t, const struct error *err)
{
    pt->texts = t->next;
    pt->making--;
    tell(t, err);
    t->refs--; /* the worker's */
    push_text_drop(t);
}

void push_texts_ask(struct push_texts *pt, const struct cluster_state *from,
                    const struct cluster_state *to,
                    void (*fn)(void *arg, struct push_text *text, const struct error *err),
                    void *arg)
{
    struct error err = ERROR_INIT;
    pt->newest = to;
    forget_earlier(pt);
    struct push_text *t = find(pt, from, to);
    bool is_new = t == NULL;
    if (is_new)
        t = text_new(pt, from, to);
    add_waiter(t, fn, arg);
    if (t->made)
        tell(t, NULL);
    else if (is_new && pool_submit(pt->pool, make, t, &err) != 0)
        take_back(pt, t, &err);
}

/* --- the end --------------------------------------------------------------------------------- */

void push_texts_close(struct push_texts *pt)
{
    struct error err;
    error_set(&err, E_CANCELLED, "this proxy is the primary no more");
    while (pt->texts != NULL) {
        struct push_text *t = pt->texts;
        pt->texts = t->next;
        tell(t, &err);
        push_text_drop(t);
    }
}

void push_texts_free(struct push_texts *pt)
{
    pt->freed = true;
    if (pt->making == 0)
        free(pt);
}
