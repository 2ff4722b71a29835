#include "access/rates.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

enum { LISTS = 1024, IDLE_MS = 3600000 };

struct entry {
    char id[USER_ID_CHARS + 1];
    struct rate rate;
    struct entry *next;
};

struct rates {
    pthread_mutex_t lock; /* of all below */
    size_t count;
    struct entry *lists[LISTS];
};

struct rates *rates_new(void)
{
    struct rates *r = xcalloc(1, sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void rates_free(struct rates *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < LISTS; i++) {
        for (struct entry *e; (e = r->lists[i]) != NULL;) {
            r->lists[i] = e->next;
            free(e);
        }
    }
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* Ids are random hex digits. */
static struct entry **list_of(struct rates *r, const char *id)
{
    unsigned long number = 0;
    for (size_t i = 0; i < 8 && id[i] != '\0'; i++)
        number = number * 31 + (unsigned char)id[i];
    return &r->lists[number % LISTS];
}

static void drop_idle(struct rates *r, struct entry **at, uint64_t now_ms)
{
    while (*at != NULL) {
        struct entry *e = *at;
        if (now_ms < e->rate.at_ms + IDLE_MS) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        r->count--;
        free(e);
    }
}

/* With the lock held. */
static struct rate *rate_of(struct rates *r, const char *id, uint64_t now_ms)
{
    struct entry **list = list_of(r, id);
    for (struct entry *e = *list; e != NULL; e = e->next) {
        if (strcmp(e->id, id) == 0)
            return &e->rate;
    }
    drop_idle(r, list, now_ms);
    struct entry *e = xcalloc(1, sizeof *e);
    snprintf(e->id, sizeof e->id, "%s", id);
    e->rate.at_ms = now_ms;
    e->next = *list;
    *list = e;
    r->count++;
    return &e->rate;
}

uint64_t rates_take_request(struct rates *r, const char *id, const struct access_rate *limit,
                            uint64_t now_ms)
{
    if (limit->requests == 0 && limit->bytes == 0)
        return 0;
    pthread_mutex_lock(&r->lock);
    uint64_t wait_ms = rate_take_request(rate_of(r, id, now_ms), limit, now_ms);
    pthread_mutex_unlock(&r->lock);
    return wait_ms;
}

uint64_t rates_take_bytes(struct rates *r, const char *id, const struct access_rate *limit,
                          uint64_t bytes, uint64_t now_ms)
{
    if (limit->bytes == 0)
        return 0;
    pthread_mutex_lock(&r->lock);
    uint64_t wait_ms = rate_take_bytes(rate_of(r, id, now_ms), limit, bytes, now_ms);
    pthread_mutex_unlock(&r->lock);
    return wait_ms;
}

size_t rates_count(struct rates *r)
{
    pthread_mutex_lock(&r->lock);
    size_t count = r->count;
    pthread_mutex_unlock(&r->lock);
    return count;
}
