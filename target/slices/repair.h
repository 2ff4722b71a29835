/* Slices that are missing, damaged, or on targets that leave, are made anew, on targets that have
 * none; those that are at no place of a write of today are copied to one, where that is asked for
 * (a rebalance); of those that two targets have one is removed (slices/plan.h): by the owner that
 * acts for the name, which reads the slice itself, or k others, and sends what it makes.  One name
 * at a time on each target.
 *
 * What is copied is on the new target's disk before the old one is asked to remove its own, and all
 * have been asked anew between: whatever ends at any time, no slice is without a copy for it.
 *
 * With antientropy.h, which brings the manifests, for the repair and the rebalance; by name for
 * slices/slice_repair.h.  For a walk that puts off what can wait (antientropy.h) those of which k
 * are left come first. Waits. */
#pragma once

#include "ec/code.h"
#include "target/copies/antientropy.h"

struct ec_repair_ask {
    struct target *target;
    struct job_stop *stop;
    uint64_t bucket_id;
    const char *name;
    ec_mask damaged;      /* slices that are, where they are */
    bool present_only;    /* while somebody does not answer, nothing is made that he may have */
    bool endangered_only; /* where more than k slices are left, nothing is made now */
    bool moves;           /* also slices that are not lost, to their places */
    bool former;          /* this target gives the name up: it need not act for it */
};

struct ec_repaired {
    unsigned made, dropped;
    bool put_off;    /* something is to be made later */
    bool lost;       /* fewer than k slices are left */
    uint64_t bytes;  /* of the slices that were made */
    uint64_t length; /* of the object */
};

/* 0 also where this target does not act for it, or it is not in slices.  E_NODE_UNREACHABLE:
 * somebody whom the map does not call away does not say what it has; E_NO_TARGETS: a target that
 * leaves has a slice that nobody can take. */
int ec_repair_name(const struct ec_repair_ask *ask, const struct cluster_state *s,
                   struct ec_repaired *done, struct error *err);

/* What a walk has left. */
struct ec_walk {
    bool made; /* something was missing, or at the wrong place */
};

/* The names of this bucket, with `ec`, that this mountpath has (NULL: any), and that this target
 * acts for. E_ABORTED; what check() says.  Sets, never clears, what is in *walk. */
int ec_repair_bucket(const struct antientropy *s, struct mountpath *mp, uint64_t bucket_id,
                     struct ec_walk *walk, struct error *err);
/* A name that all its owners have, and this target, which is none of them, gives up in a rebalance:
 * its slices are brought to their places first.  For the owner that acts may have got the name
 * after its own walk.  false: the name stays here for now; the tally says why. */
bool ec_repair_before_it_goes(const struct antientropy *s, uint64_t bucket_id, const char *name);
