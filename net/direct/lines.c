/* A list for each of a few hashes of thread and address.  What was given last is taken first. */
#include "net/direct/lines.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "net/direct/hash.h"
#include "net/http/guest.h"

enum { SLOTS = 64 };

struct lines {
    size_t kept_max;
    pthread_mutex_t lock; /* of what follows; nothing waits under it */
    size_t kept;
    struct line *slots[SLOTS];
};

static size_t slot_of(const struct reactor *thread, const char *authority)
{
    return direct_hash((uint32_t)((uintptr_t)thread >> 6), authority) % SLOTS;
}

/* With the lock held. */
static void remove_line(struct lines *l, struct line *line)
{
    *line->prev = line->next;
    if (line->next != NULL)
        line->next->prev = line->prev;
    line->lines = NULL;
    l->kept--;
}

/* --- while they are kept ---------------------------------------------------------------------- */

static void close_kept(void *ctx)
{
    struct line *line = ctx;
    struct lines *l = line->lines;
    pthread_mutex_lock(&l->lock);
    remove_line(l, line);
    pthread_mutex_unlock(&l->lock);
    line_close(line);
}

/* The event may be of bytes that were read before the line came here. */
static void on_event(void *ctx, uint32_t events)
{
    (void)events;
    if (!line_is_clean(ctx))
        close_kept(ctx);
}

static void on_tick(void *ctx, uint64_t now_ms)
{
    const struct line *line = ctx;
    if (now_ms > line->since_ms && now_ms - line->since_ms > LINES_KEPT_MS)
        close_kept(ctx);
}

/* --- taking and giving ------------------------------------------------------------------------ */

struct line *lines_take(struct lines *l, const struct http_request *req, const char *authority)
{
    const struct reactor *thread = http_request_thread(req);
    pthread_mutex_lock(&l->lock);
    struct line *line = l->slots[slot_of(thread, authority)];
    while (line != NULL &&
           (http_guest_thread(line->guest) != thread || strcmp(line->authority, authority) != 0))
        line = line->next;
    if (line != NULL)
        remove_line(l, line);
    pthread_mutex_unlock(&l->lock);
    return line;
}

/* Before the line can be found. */
static void prepare(struct lines *l, struct line *line)
{
    static const struct http_guest_ops ops = {
        .event = on_event, .tick = on_tick, .end = close_kept};
    line_forget(line);
    line_await(line, 1);
    line->since_ms = clock_ms();
    line->copies = false;
    line->lines = l;
    http_guest_pass(line->guest, &ops, line);
}

void lines_give(struct lines *l, struct line *line)
{
    struct line **slot = &l->slots[slot_of(http_guest_thread(line->guest), line->authority)];
    prepare(l, line);
    pthread_mutex_lock(&l->lock);
    bool keeps = l->kept < l->kept_max;
    if (keeps) {
        line->next = *slot;
        line->prev = slot;
        if (line->next != NULL)
            line->next->prev = &line->next;
        *slot = line;
        l->kept++;
    }
    pthread_mutex_unlock(&l->lock);
    if (!keeps)
        line_close(line);
}

/* --- the beginning and the end ---------------------------------------------------------------- */

struct lines *lines_new(size_t kept_max)
{
    struct lines *l = xcalloc(1, sizeof *l);
    l->kept_max = kept_max;
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void lines_free(struct lines *l)
{
    if (l == NULL)
        return;
    assert(l->kept == 0);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
