/* The files at and below a path of this machine, without leaving a root: links are not followed,
 * neither on the way nor at its end, so that nobody who may write there can lead the walk out.
 *
 * What is neither file nor directory is given to other().  Depth is bounded by the length of names
 * (PROMOTE_BELOW_MAX).  Any thread that may wait. */
#pragma once

#include <stddef.h>

#include "common/error.h"

enum {
    PROMOTE_BELOW_MAX = 1024, /* bytes of a path below the one that is walked */
    PROMOTE_BATCH = 64,
};

struct promote_walk {
    const char *root;
    const char *path; /* absolute, without parts that path_flaw() refuses */
    /* Up to PROMOTE_BATCH files of one directory; `below`: its path below that which is walked,
     * with a slash at its end, or "". */
    int (*files)(void *ctx, int dir, const char *below, char *const *names, size_t n,
                 struct error *err);
    void (*other)(void *ctx, const char *below, const char *name, const struct error *err);
    void *ctx;
};

/* Until files() fails.  0 also where there is nothing at the path.  E_INVALID: the path is not
 * below the root, or leads through a link; else what the system says. */
int promote_walk(const struct promote_walk *w, struct error *err);
/* The path below the root, "" for the root itself; NULL: it is not there.  Pure. */
const char *promote_walk_below(const char *root, const char *path);
