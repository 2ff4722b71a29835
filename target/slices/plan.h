/* Which target has which slice of an object.  Pure: `ranked` are the bucket's targets as the map
 * ranks them for the object's name, active and unreachable ones.
 *
 *   write    slice i goes to the i-th of those that are active and have all their mountpaths: the
 *            place of another is taken by the next.  At least k + 1 must be there; parity that
 *            finds no target is left to a repair
 *   read     first asked are those that had them if nobody was away at the write; where that
 *            is not so, everybody is asked what he has; of two who have one the first, and the
 *            other where that one's has failed; what is left of a damaged one where nobody has one
 *   repair   a slice that nobody active has goes to the first active target that has all its
 *            mountpaths and no slice (or else none that is not elsewhere, too), one that is
 *            damaged to where it is
 *   places   the first k + m active targets that have all their mountpaths, where a write of today
 *            has one slice each.  Which of them has which does not matter: so a target that joins,
 *            or has more room now, moves one slice of an object at the most, and only to itself
 *   move     where nothing is missing, a slice that is at none of the places goes to one that has
 *            none: first a copy
 *   surplus  of a slice that two have the one of lower rank goes.  So the one that is of the
 *            highest rank of all never does, however many decide at once, and however late what
 *            they decided is done, as long as all rank by one map
 *   garbage  slices whose tag none of the owners of the name has in its manifest, or in one that
 *            a job hides, where all of them can be asked and none is on its way from an earlier
 *            one */
#pragma once

#include "cluster/documents/state.h"
#include "ec/code.h"

struct ec_homes {
    unsigned count;                        /* k + m */
    const struct node *all[EC_SLICES_MAX]; /* by slice; NULL: nobody */
    ec_mask doubted;                       /* are damaged there: read last */
    ec_mask left;                          /* of these, what is not whole: slices/slices.h */
};

/* E_NO_TARGETS. */
int ec_plan_write(const struct node *const *ranked, size_t count, unsigned k, unsigned m,
                  struct ec_homes *out, struct error *err);
void ec_plan_guess(const struct node *const *ranked, size_t count, unsigned slices,
                   struct ec_homes *out);

/* What a PUT fails with where a target has not taken its slice for this reason.  *send_on: is set
 * where another attempt may do better: the target was not reached, restarts, or has another map. */
int ec_plan_failure(int slice_code, bool *send_on);

/* What a target has said that it has. */
struct ec_found {
    const struct node *node;
    bool answered;
    ec_mask has;
    ec_mask left;    /* of these it has what is left of a damaged one */
    ec_mask surplus; /* of these a target of a higher rank has, too (ec_plan_repair()) */
};

ec_mask ec_homes_mask(const struct ec_homes *h);
void ec_plan_read(const struct ec_found *found, size_t count, unsigned slices,
                  struct ec_homes *out);
/* Who gave the slices of `failed` in vain has them no more, where somebody else has. */
void ec_plan_pass_over(struct ec_found *found, size_t count, const struct ec_homes *tried,
                       ec_mask failed);
/* Who gave the slices of `failed` in vain has them no more, also where nobody else has. */
void ec_plan_strike(struct ec_found *found, size_t count, const struct ec_homes *tried,
                    ec_mask failed);
/* Can it be read?  E_NODE_UNREACHABLE where those who have not answered may have what is missing;
 * E_CORRUPT where it is lost. */
int ec_plan_check(const struct ec_found *found, size_t count, unsigned k, unsigned slices,
                  struct error *err);
bool ec_all_answered(const struct ec_found *found, size_t count);
/* The first that the map does not call away, and that has not answered: it may have what seems to
 * be missing.  NULL: none. */
const struct node *ec_plan_silent(const struct ec_found *found, size_t count);

struct ec_mending {
    struct ec_homes to; /* the slices that are to be made, and for whom */
    ec_mask homeless;   /* others that are missing: no target could take them */
    ec_mask leaving;    /* of both, what a target that leaves has */
};

/* `doubted`: slices that are damaged where they are.  Sets found[].surplus where nothing else is to
 * be done. */
void ec_plan_repair(struct ec_found *found, size_t count, unsigned slices, ec_mask doubted,
                    struct ec_mending *out);
/* Where all have answered, and all that stay have all their mountpaths: the slices that are to be
 * copied, and to whom. */
void ec_plan_move(const struct ec_found *found, size_t count, unsigned slices, struct ec_homes *to);
/* Something is to be made, and one more loss would not be the end: more than k are not doubted. */
bool ec_plan_may_wait(const struct ec_homes *from, const struct ec_homes *to, unsigned k);
/* Something that nobody sees yet has as many slices as a write of now would give it, or as many
 * less as targets are `spared` (their answers do not count). */
bool ec_plan_stands(const struct ec_found *found, size_t count, unsigned k, unsigned slices,
                    unsigned spared);
/* What an owner of the name has said. */
struct ec_owner {
    bool answered;
    uint64_t slices; /* the tag of its manifest, or 0 */
    uint64_t hidden; /* the same of one that a job hides */
};
bool ec_plan_is_garbage(uint64_t tag, const struct ec_owner *owners, size_t count, bool settled);
