/* Which of the copies that nodes have kept of the documents shall be believed: pure.
 *
 * The greatest state (term, version) of one cluster.  It is refused where this primary is a cluster
 * of its own (it has buckets or targets, and they are another cluster's), where the copies are of
 * several clusters and none was named, where two that have the same (term, version) differ, and
 * where nothing is to be had: the primary's own state is that, or later. */
#pragma once

#include <stddef.h>

#include "cluster/documents/state.h"

struct recovery_copy {
    const char *node;
    const struct cluster_state *state; /* NULL: it could not be had */
    uint64_t digest;                   /* of the document: the same, the same document */
};

struct recovery_wish {
    const char *cluster; /* "": whichever it is */
    const char *node;    /* "": the greatest; else this one's, also where others differ */
};

/* *best is an index. */
int recovery_choose(const struct cluster_state *present, const struct recovery_copy *copies,
                    size_t count, const struct recovery_wish *wish, size_t *best,
                    struct error *err);
/* Has this node given its copy of the documents of the chosen one's cluster? */
bool recovery_is_heard(const struct cluster_state *chosen, const struct recovery_copy *copies,
                       size_t count, const char *node);
/* E_PRECONDITION where a node of the chosen map, but for the primary `self`, has given none: it may
 * know more.  An operator who names a node accepts that. */
int recovery_check_heard(const struct recovery_copy *chosen, const struct recovery_copy *copies,
                         size_t count, const struct recovery_wish *wish, const char *self,
                         struct error *err);
uint64_t recovery_digest(const struct cluster_state *s);
