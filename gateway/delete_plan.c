#include "gateway/delete_plan.h"

#include <string.h>

struct queue {
    const char *target;
    size_t first, last; /* keys, by delete_plan.following; NONE: it is empty */
    unsigned running;
    bool is_silent;
    struct queue *next;
};

struct delete_plan {
    struct arena *arena;
    struct queue *queues;
    struct queue **of; /* by key */
    size_t *following; /* by key: the next one of its queue */
    size_t waiting;    /* keys */
    unsigned running;  /* calls */
};

static const size_t NONE = (size_t)-1;

struct delete_plan *delete_plan_new(struct arena *arena, size_t keys)
{
    struct delete_plan *p = arena_alloc(arena, sizeof *p);
    *p = (struct delete_plan){.arena = arena,
                              .of = arena_alloc(arena, keys * sizeof p->of[0]),
                              .following = arena_alloc(arena, keys * sizeof p->following[0])};
    return p;
}

static struct queue *find(const struct delete_plan *p, const char *target)
{
    struct queue *q = p->queues;
    while (q != NULL && strcmp(q->target, target) != 0)
        q = q->next;
    return q;
}

static struct queue *queue_of(struct delete_plan *p, const char *target)
{
    struct queue *q = find(p, target);
    if (q != NULL)
        return q;
    q = arena_alloc(p->arena, sizeof *q);
    *q = (struct queue){
        .target = arena_strdup(p->arena, target), .first = NONE, .last = NONE, .next = p->queues};
    p->queues = q;
    return q;
}

void delete_plan_add(struct delete_plan *p, size_t key, const char *target)
{
    struct queue *q = queue_of(p, target);
    p->of[key] = q;
    p->following[key] = NONE;
    if (q->first == NONE)
        q->first = key;
    else
        p->following[q->last] = key;
    q->last = key;
    p->waiting++;
}

/* NULL: no key waits. */
static struct queue *pick(const struct delete_plan *p)
{
    struct queue *best = NULL;
    for (struct queue *q = p->queues; q != NULL; q = q->next) {
        if (q->first != NONE && (best == NULL || q->running < best->running))
            best = q;
    }
    return best;
}

bool delete_plan_next(struct delete_plan *p, size_t *key)
{
    struct queue *q = p->running < DELETE_AT_ONCE ? pick(p) : NULL;
    if (q == NULL)
        return false;
    *key = q->first;
    q->first = p->following[*key];
    q->running++;
    p->waiting--;
    p->running++;
    return true;
}

void delete_plan_ended(struct delete_plan *p, size_t key)
{
    p->of[key]->running--;
    p->running--;
}

bool delete_plan_is_over(const struct delete_plan *p)
{
    return p->waiting == 0 && p->running == 0;
}

void delete_plan_note_silent(struct delete_plan *p, const char *target)
{
    queue_of(p, target)->is_silent = true;
}

bool delete_plan_is_silent(const struct delete_plan *p, const char *target)
{
    const struct queue *q = find(p, target);
    return q != NULL && q->is_silent;
}
