#include "proxy/http/relay_waits.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"

struct relay_waits {
    uint64_t pause_ms;
    struct loop_timer *timer;
    struct relay_wait *list;
};

/* Who waits again meanwhile waits for the next time. */
static void pause_is_over(void *arg)
{
    struct relay_waits *w = arg;
    struct relay_wait *list = steal(w->list);
    while (list != NULL) {
        struct relay_wait *wait = list;
        list = wait->next;
        wait->fn(wait->arg);
    }
}

void relay_waits_add(struct relay_waits *w, struct relay_wait *wait, void (*fn)(void *arg),
                     void *arg)
{
    if (w->list == NULL)
        loop_timer_start(w->timer, w->pause_ms, 0);
    *wait = (struct relay_wait){.next = w->list, .fn = fn, .arg = arg};
    w->list = wait;
}

struct relay_waits *relay_waits_new(struct loop *loop, uint64_t pause_ms)
{
    struct relay_waits *w = xcalloc(1, sizeof *w);
    w->pause_ms = pause_ms;
    w->timer = loop_timer_new(loop, pause_is_over, w);
    return w;
}

void relay_waits_free(struct relay_waits *w)
{
    if (w == NULL)
        return;
    pause_is_over(w);
    loop_timer_free(w->timer);
    free(w);
}
