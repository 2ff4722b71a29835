#include "access/password_tries.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cluster/access/user.h"
#include "common/mem.h"

/* The times of the last tries; the oldest is the next to be overwritten. */
struct tried {
    char name[USER_NAME_MAX + 1];
    uint64_t at_ms[PASSWORD_TRIES_MAX];
    unsigned count, next;
};

struct password_tries {
    pthread_mutex_t lock;
    struct tried *names;
    size_t count, room;
};

struct password_tries *password_tries_new(void)
{
    struct password_tries *t = xcalloc(1, sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void password_tries_free(struct password_tries *t)
{
    if (t == NULL)
        return;
    pthread_mutex_destroy(&t->lock);
    free(t->names);
    free(t);
}

static uint64_t last_ms(const struct tried *n)
{
    return n->at_ms[(n->next + PASSWORD_TRIES_MAX - 1) % PASSWORD_TRIES_MAX];
}

static bool is_over(const struct tried *n, uint64_t now_ms)
{
    return now_ms - last_ms(n) >= PASSWORD_TRIES_WINDOW_MS;
}

static uint64_t wait_of(const struct tried *n, uint64_t now_ms)
{
    bool many =
        n->count == PASSWORD_TRIES_MAX && last_ms(n) - n->at_ms[n->next] < PASSWORD_TRIES_WINDOW_MS;
    return many && !is_over(n, now_ms) ? last_ms(n) + PASSWORD_TRIES_WINDOW_MS - now_ms : 0;
}

static struct tried *find(struct password_tries *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->names[i].name, name) == 0)
            return &t->names[i];
    }
    return NULL;
}

/* Whose tries count no more, or are the oldest. */
static struct tried *replaceable(struct password_tries *t, uint64_t now_ms)
{
    struct tried *oldest = NULL;
    for (size_t i = 0; i < t->count; i++) {
        struct tried *n = &t->names[i];
        if (oldest == NULL || last_ms(n) < last_ms(oldest))
            oldest = n;
    }
    bool full = t->count == PASSWORD_NAMES_MAX;
    return oldest != NULL && (full || is_over(oldest, now_ms)) ? oldest : NULL;
}

static struct tried *add(struct password_tries *t, const char *name, uint64_t now_ms)
{
    struct tried *n = replaceable(t, now_ms);
    if (n == NULL && t->count == t->room) {
        t->room = t->room > 0 ? 2 * t->room : 16;
        t->names = xrealloc(t->names, t->room * sizeof t->names[0]);
    }
    if (n == NULL)
        n = &t->names[t->count++];
    *n = (struct tried){.count = 0};
    snprintf(n->name, sizeof n->name, "%s", name);
    return n;
}

uint64_t password_tries_begin(struct password_tries *t, const char *name, uint64_t now_ms)
{
    pthread_mutex_lock(&t->lock);
    struct tried *n = find(t, name);
    uint64_t wait_ms = n != NULL ? wait_of(n, now_ms) : 0;
    if (wait_ms == 0) {
        if (n == NULL)
            n = add(t, name, now_ms);
        n->at_ms[n->next] = now_ms;
        n->next = (n->next + 1) % PASSWORD_TRIES_MAX;
        n->count += n->count < PASSWORD_TRIES_MAX;
    }
    pthread_mutex_unlock(&t->lock);
    return wait_ms;
}

void password_tries_forgive(struct password_tries *t, const char *name)
{
    pthread_mutex_lock(&t->lock);
    struct tried *n = find(t, name);
    if (n != NULL)
        *n = t->names[--t->count];
    pthread_mutex_unlock(&t->lock);
}
