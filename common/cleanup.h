/* Scope-bound ownership.
 *
 *     _cleanup_(buf_done) struct buf text = BUF_INIT;     // released when the scope ends
 *     _cleanup_free_ char *name = xstrdup("a");
 *     return steal(name);                                 // handed to the caller instead
 *
 * Every x_free() takes NULL.  DEFINE_CLEANUP makes the pointer-to-pointer form that the
 * attribute wants out of an ordinary free function. */
#pragma once

#include <stddef.h>
#include <unistd.h>

/* A variable may be there for its cleanup alone; clang would call it unused. */
#define _cleanup_(fn) __attribute__((cleanup(fn), unused))

/* void x_freep(T **p): calls free_fn(*p) when *p is not NULL. */
#define DEFINE_CLEANUP(type, free_fn)       \
    static inline void free_fn##p(type **p) \
    {                                       \
        if (*p != NULL)                     \
            free_fn(*p);                    \
    }                                       \
    struct free_fn##_cleanup_defined_

static inline void cleanup_free_(void *p)
{
    free(*(void **)p);
}
#define _cleanup_free_ _cleanup_(cleanup_free_)

static inline void cleanup_close_(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
#define _cleanup_close_ _cleanup_(cleanup_close_)

/* The value of lvalue p, which becomes NULL: ownership leaves this scope. */
#define steal(p)                        \
    __extension__({                     \
        __typeof__(p) steal_tmp_ = (p); \
        (p) = NULL;                     \
        steal_tmp_;                     \
    })

static inline int steal_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}
