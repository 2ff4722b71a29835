#include "target/copies/staged.h"

#include <pthread.h>
#include <string.h>

#include "common/mem.h"
#include "target/store/object.h"

struct stage {
    struct stage *next;
    uint64_t since_ms;
    struct object_put *put;
    char id[];
};

struct staged {
    pthread_mutex_t lock; /* of what follows */
    size_t count;
    struct stage *newest;
};

struct staged *staged_new(void)
{
    struct staged *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

/* Cut off under the lock, ended without it. */
static void end_all(struct stage *list)
{
    while (list != NULL) {
        struct stage *next = list->next;
        object_put_abort(list->put);
        free(list);
        list = next;
    }
}

void staged_free(struct staged *s)
{
    if (s == NULL)
        return;
    end_all(s->newest);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct stage **find(struct staged *s, const char *id)
{
    struct stage **at = &s->newest;
    while (*at != NULL && strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    return at;
}

int staged_keep(struct staged *s, const char *id, uint64_t now_ms, struct object_put *put,
                struct error *err)
{
    int code = 0;
    size_t len = strlen(id);
    struct stage *stage = xcalloc(1, sizeof *stage + len + 1);
    memcpy(stage->id, id, len + 1);
    stage->since_ms = now_ms;
    stage->put = put;
    pthread_mutex_lock(&s->lock);
    if (s->count >= STAGED_MOST)
        code =
            error_set(err, E_OVERLOAD, "%zu writes of others are staged here, the limit", s->count);
    else if (*find(s, id) != NULL)
        code = error_set(err, E_EXISTS, "stage '%s' exists already", id);
    if (code == 0) {
        stage->next = s->newest;
        s->newest = stage;
        s->count++;
    }
    pthread_mutex_unlock(&s->lock);
    if (code != 0)
        free(stage);
    return code;
}

struct object_put *staged_take(struct staged *s, const char *id)
{
    pthread_mutex_lock(&s->lock);
    struct stage **at = find(s, id), *stage = *at;
    if (stage != NULL) {
        *at = stage->next;
        s->count--;
    }
    pthread_mutex_unlock(&s->lock);
    struct object_put *put = stage != NULL ? stage->put : NULL;
    free(stage);
    return put;
}

/* Those of which `goes` says so. */
static void drop(struct staged *s, bool (*goes)(const struct stage *stage, uint64_t before_ms),
                 uint64_t before_ms)
{
    struct stage *gone = NULL;
    pthread_mutex_lock(&s->lock);
    for (struct stage **at = &s->newest; *at != NULL;) {
        struct stage *stage = *at;
        if (!goes(stage, before_ms)) {
            at = &stage->next;
            continue;
        }
        *at = stage->next;
        stage->next = gone;
        gone = stage;
        s->count--;
    }
    pthread_mutex_unlock(&s->lock);
    end_all(gone);
}

static bool is_old(const struct stage *stage, uint64_t before_ms)
{
    return stage->since_ms < before_ms;
}

void staged_expire(struct staged *s, uint64_t before_ms)
{
    drop(s, is_old, before_ms);
}

static bool is_on_former_mountpaths(const struct stage *stage, uint64_t before_ms)
{
    (void)before_ms;
    return !object_put_is_current(stage->put);
}

void staged_leave_mountpaths(struct staged *s)
{
    drop(s, is_on_former_mountpaths, 0);
}
