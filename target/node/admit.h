/* May this target answer a call for an object?  Ownership and the age of what both sides know:
 * pure.
 *
 * A redirect of a proxy carries the bucket's id (dfcb) and the version of the state that it was
 * made from (dfcv = term.version).  Who comes directly carries neither.
 *
 *   dfcv newer than our state        refresh it first, then ask again
 *   dfcv older than our placement    without dfcb E_STALE_MAP: ask the proxy again; with it both
 *                                    mean the same bucket, and who owns the object we know better
 *   dfcb is another bucket's id      E_STALE_MAP: the bucket was made anew
 *   another target owns the object   redirect, unless a peer asks for what we hold
 *                                    (earlier_owners.h)
 *   several own it                   the one that acts counts (cluster/placement/owners.h), but for
 *                                    its copies, and for reads that any good owner may answer
 *   we own it                        go on */
#pragma once

#include <stdint.h>

#include "cluster/documents/state.h"

enum admit_verdict { ADMIT_SERVE, ADMIT_REDIRECT, ADMIT_REFRESH, ADMIT_REFUSE };

struct admit_question {
    const struct cluster_state *state;
    const char *self; /* this target's id */
    /* state_sync_placement() */
    uint64_t placement_term, placement_version;
    const char *bucket;
    const char *object;
    const char *dfcb; /* or NULL, as they stand in the query */
    const char *dfcv;
    bool refreshed; /* it was asked before: a state that is still older is refused */
    bool holder;    /* whoever owns it: we are asked for what we have */
    bool copy;      /* from one owner to another */
    bool reads;     /* a client's GET or HEAD, which another owner may answer, too */
};

struct admit_answer {
    enum admit_verdict verdict;
    const struct bucket *bucket; /* the state's */
    const struct node *owner;    /* with ADMIT_REDIRECT */
    bool beside;                 /* with ADMIT_SERVE: to the owner that acts (owners_readers()) */
};

/* err is set with ADMIT_REFUSE: E_NAME, E_INVALID, E_BUCKET_NOT_FOUND, E_STALE_MAP, E_NOT_READY,
 * E_NO_TARGETS, E_NODE_UNREACHABLE. */
void admit(const struct admit_question *q, struct admit_answer *a, struct error *err);

/* The bucket of a name, which must have the id that a redirect says (NULL: there is none): whoever
 * has a proof for one bucket may else use it for another.  E_BUCKET_NOT_FOUND, E_INVALID,
 * E_STALE_MAP. */
int admit_find_bucket(const struct cluster_state *s, const char *name, const char *dfcb,
                      const struct bucket **out, struct error *err);

/* "1.17" */
int admit_parse_state_version(const char *text, uint64_t *term, uint64_t *version,
                              struct error *err);
/* Is (term, version) later than what the state says? */
bool admit_is_newer(uint64_t term, uint64_t version, const struct cluster_state *s);
