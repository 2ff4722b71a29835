/* The parts of uploads on their way: a few threads send those of all writers.
 *
 *     parts_new
 *     parts_push     one part; the bytes are the queue's until `done` is called
 *     parts_free     waits for those that were pushed */
#pragma once

#include <stdint.h>

#include "common/cleanup.h"
#include "mount/write/store.h"

struct part {
    struct part *next;
    const char *key, *upload; /* valid until done */
    uint32_t number;          /* from 1 on */
    char *data;
    size_t size;
    uint64_t taken; /* the owner's: of its budget */
    char *tag;      /* when it is sent */
    /* From a thread of the queue; rc: 0 or -errno.  The part is the owner's again. */
    void (*done)(struct part *part, int rc);
    void *owner;
};

struct parts;

/* NULL: no thread could be started.  The store is copied. */
struct parts *parts_new(const struct write_store *store, unsigned threads);
void parts_push(struct parts *q, struct part *part);
void parts_free(struct parts *q); /* NULL is fine */
DEFINE_CLEANUP(struct parts, parts_free);
