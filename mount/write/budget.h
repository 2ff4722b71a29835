/* A bound of bytes that several threads share. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* How long to wait, and for whom. */
struct budget_wait {
    uint64_t wait_ms;
    bool (*interrupted)(void *context); /* asked while waiting; NULL: never */
    void *context;
};

struct budget {
    pthread_mutex_t lock;
    pthread_cond_t news;
    uint64_t limit, used; /* bytes */
};

void budget_init(struct budget *b, uint64_t limit_bytes);
void budget_done(struct budget *b);

/* 0; -ENOBUFS: there was no room for so long; -EINTR.  More than the limit never has room. */
int budget_take(struct budget *b, uint64_t bytes, const struct budget_wait *wait);
void budget_give(struct budget *b, uint64_t bytes);
