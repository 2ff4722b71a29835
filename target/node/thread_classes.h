/* The classes of worker threads of a target: thread_classes.def is the table.  Each class is one
 * pool (io/pool.h).  Not in the table: the readers of a mountpath (io/reader.h), of which each disk
 * has its own, and threads that live as long as the target. */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct pool;
struct target_params;

enum thread_class {
#define THREAD_CLASS(id, name, limit, queue, kept, priority, waits) THREADS_##id,
#include "target/node/thread_classes.def"
#undef THREAD_CLASS
    THREAD_CLASSES
};

struct thread_class_row {
    const char *name;
    unsigned limit; /* threads */
    size_t queue_max;
    unsigned kept;      /* of its threads, those that stay when they are idle */
    int nicer;          /* its threads, than the process */
    uint32_t waits_for; /* bit 1 << class */
};

/* The row of a class under these parameters. */
struct thread_class_row thread_class_row(enum thread_class c, const struct target_params *p);
/* The pool of a class.  Its threads end after p->thread_idle without work. */
int thread_class_new(enum thread_class c, const struct target_params *p, struct pool **out,
                     struct error *err);
