/* Open files and directories, by the numbers that the kernel has of them: that of the ledger, and
 * a stamp that no other handle has.  So a release that the kernel sends again after a crash never
 * meets a newer handle.  What is still open when the mount ends is closed then. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "mount/vfs/ledger.h"

struct handle {
    uint64_t id;                     /* the kernel's */
    void (*close)(struct handle *h); /* without handles_remove() */
};

struct handles {
    pthread_mutex_t lock;
    struct ledger *ledger;
    struct handle **by_number;
    uint64_t room;
};

void handles_init(struct handles *h, struct ledger *ledger); /* borrowed */
void handles_done(struct handles *h);                        /* closes all */
/* 0, or -ENOMEM: the ledger has no room. */
int handles_add(struct handles *h, struct handle *one, const struct ledger_record *r,
                void (*close)(struct handle *h));
/* One that the ledger has already. */
void handles_restore(struct handles *h, struct handle *one, uint64_t number, uint64_t stamp,
                     void (*close)(struct handle *h));
struct handle *handles_of(struct handles *h, uint64_t id); /* NULL: there is none */
uint64_t handles_number(const struct handle *one);         /* the ledger's */
/* The first that is so; NULL: none.  It takes time in proportion to what is open. */
struct handle *handles_find(struct handles *h,
                            bool (*is)(const struct handle *one, const void *wanted),
                            const void *wanted);
void handles_remove(struct handles *h, struct handle *one);
