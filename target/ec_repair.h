/* Slices that are missing, damaged, or on targets that leave, are made anew from others, on targets
 * that have none; those that two targets have are removed from one (ec_plan.h): by the owner that
 * acts for the name, which reads k of them and sends what it makes.  One name at a time on each
 * target.
 *
 * With spread.h, which brings the manifests, for the repair and the rebalance; by name for
 * ec_mend.h.  For a walk that puts off what can wait (spread.h) those of which k are left come
 * first. Waits. */
#pragma once

#include "ec/code.h"
#include "target/spread.h"

struct ec_repair_ask {
    struct target *target;
    struct job_stop *stop;
    uint64_t bucket_id;
    const char *name;
    ec_mask damaged;      /* slices that are, where they are */
    bool present_only;    /* while somebody does not answer, nothing is made that he may have */
    bool endangered_only; /* where more than k slices are left, nothing is made now */
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
    bool made;  /* something was missing */
    bool waits; /* something that others make is still missing */
};

/* The names of this bucket, with `ec`, that this mountpath has.  Where this target is no owner any
 * more the one that acts is told what is missing, since the manifest may have come there after its
 * own walk.  E_ABORTED; what check() says.  Sets, never clears, what is in *walk. */
int ec_repair_bucket(const struct spread *s, struct mountpath *mp, uint64_t bucket_id,
                     struct ec_walk *walk, struct error *err);
