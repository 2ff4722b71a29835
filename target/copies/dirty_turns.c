#include "target/copies/dirty_turns.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "common/mem.h"
#include "target/store/name_queue.h"

struct settling {
    struct settling *next;
    struct dirty_turns *all;
    uint64_t bucket_id;
    bool begun; /* it is in a turn, or waits for it */
    char name[];
};

struct dirty_turns {
    struct name_queue *turns;
    size_t at_once, most;
    dirty_turns_fn *fn;
    void *arg;
    pthread_mutex_t lock; /* of what follows */
    size_t begun, count;
    struct settling *first; /* as they came */
};

struct dirty_turns *dirty_turns_new(struct name_queue *turns, size_t at_once, size_t most,
                                    dirty_turns_fn *fn, void *arg)
{
    struct dirty_turns *s = xcalloc(1, sizeof *s);
    *s = (struct dirty_turns){
        .turns = turns, .at_once = at_once, .most = most, .fn = fn, .arg = arg};
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void dirty_turns_free(struct dirty_turns *s)
{
    if (s == NULL)
        return;
    for (struct settling *g = s->first, *next; g != NULL; g = next) {
        next = g->next;
        free(g);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void run(void *arg);

/* Under the lock.  Where no turn is to be had the next one who comes or ends tries again. */
static void begin_more(struct dirty_turns *s)
{
    int code = 0;
    for (struct settling *g = s->first; g != NULL && code == 0 && s->begun < s->at_once;
         g = g->next) {
        if (g->begun)
            continue;
        code = name_queue_enter(s->turns, g->bucket_id, g->name, run, g, NULL);
        g->begun = code == 0;
        s->begun += g->begun;
    }
}

static void run(void *arg)
{
    struct settling *g = arg;
    struct dirty_turns *s = g->all;
    s->fn(s->arg, g->bucket_id, g->name);
    pthread_mutex_lock(&s->lock);
    struct settling **at = &s->first;
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    s->begun--;
    s->count--;
    begin_more(s);
    pthread_mutex_unlock(&s->lock);
    free(g);
}

static struct settling *settling_new(struct dirty_turns *s, uint64_t bucket_id, const char *name)
{
    size_t len = strlen(name);
    struct settling *g = xcalloc(1, sizeof *g + len + 1);
    g->all = s;
    g->bucket_id = bucket_id;
    memcpy(g->name, name, len + 1);
    return g;
}

/* Under the lock. */
static int take(struct dirty_turns *s, uint64_t bucket_id, const char *name, struct error *err)
{
    struct settling **at = &s->first;
    while (*at != NULL && ((*at)->bucket_id != bucket_id || strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    if (*at != NULL)
        return 0;
    if (s->count == s->most)
        return error_set(err, E_OVERLOAD, "%zu names are dirty, the limit", s->count);
    *at = settling_new(s, bucket_id, name);
    s->count++;
    return 0;
}

int dirty_turns_want(struct dirty_turns *s, uint64_t bucket_id, const char *name, struct error *err)
{
    pthread_mutex_lock(&s->lock);
    int code = take(s, bucket_id, name, err);
    begin_more(s);
    pthread_mutex_unlock(&s->lock);
    return code;
}
