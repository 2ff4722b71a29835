/* Warnings of a job: the first NOTES_MAX are kept, the rest counted.  Any thread. */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdint.h>

#define NOTES_MAX 100

struct notes {
    pthread_mutex_t lock;
    uint64_t count;
    char *texts[NOTES_MAX];
};

void notes_init(struct notes *n);
void notes_done(struct notes *n);
void notes_add(struct notes *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint64_t notes_count(struct notes *n);
/* Forgets all but the first `count`. */
void notes_cut(struct notes *n, uint64_t count);
json_t *notes_json(struct notes *n); /* texts, and "… and 23 more warnings" at the end */
