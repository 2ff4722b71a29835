/* Asking several targets at once what they have of a name (GET /v1/held/…, earlier_owners.h): an
 * answer is a promise that nothing of an earlier map is committed there any more.
 *
 * Where not all of them are needed, the slowest is not waited for: when `enough` says so the others
 * have `grace_ms` left.  What comes later is nobody's.
 *
 * Waits: not in a loop's thread, an HTTP thread or a worker. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/documents/state.h"
#include "common/error.h"

struct object_held;
struct target;

struct ask_peers_spec {
    struct target *target;
    const struct cluster_state *state;
    const struct node *const *nodes; /* the state's */
    size_t count;
    uint64_t bucket_id;
    const char *name;
    /* Who knows later owners than the state's does not answer: what has been written since may be
     * on those alone. */
    bool these_owners;
    /* NULL: all are needed. */
    bool (*enough)(void *ctx, const bool *knows); /* heard, and can say what they have */
    void *ctx;
    uint64_t grace_ms;
};

/* held[i] is the i-th's, where heard[i].  0: all were heard; else why one was not. */
int ask_peers(const struct ask_peers_spec *spec, struct object_held *held, bool *heard,
              struct error *err);
