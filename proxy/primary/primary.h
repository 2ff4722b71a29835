/* What only the primary has (who is alive, pushes, jobs), and how it comes and goes.
 *
 * The embedded metastore's proxy begins once and ends with the process; one that was elected begins
 * and ends as etcd says, any number of times.  The control loop uses the parts without a lock, for
 * it alone puts them there and takes them away; other threads use them under p->role_lock.
 *
 * Both functions block, and are not for a loop's thread. */
#pragma once

#include "cluster/documents/state.h"

struct proxy;

/* What a term begins upon. */
struct primary_base {
    const struct cluster_state *state;
    bool is_first;   /* the metastore has nothing of it yet */
    bool next_epoch; /* somebody has decided that this is true, whatever nodes have seen later */
};

/* `revision` makes the term greater than those before in its epoch.  E_NODE_STATE: the cluster is
 * locked, and this proxy would serve everybody (access/exposure.h). */
int primary_begin(struct proxy *p, const struct primary_base *base, uint64_t revision,
                  struct error *err);
/* Where it is primary.  When this returns everything that was under way there has ended. */
void primary_end(struct proxy *p);
