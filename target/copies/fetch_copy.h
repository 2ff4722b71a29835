/* Brings what another target has of a name here, as it is: its version, its time, its checksum.
 * Waits. */
#pragma once

#include "cluster/documents/state.h"
#include "target/store/object.h"

struct target;

struct fetch_copy {
    struct target *target;
    const struct cluster_state *state;
    const struct bucket *bucket;
    const char *name;
    const struct node *from;
    const struct object_held *held; /* what it has said that it has; a tombstone needs no more */
};

/* 0 also where something as new is here.  E_NODE_UNREACHABLE; E_CORRUPT where what it
 * has is damaged; E_NOT_READY where it has something else by now. */
int fetch_copy(const struct fetch_copy *p, struct error *err);
