/* Slices that other targets have (slices/slices.h): who has which, where they are read and written,
 * and the removal of what another one has, too.
 *
 * Waits: for threads that may. */
#pragma once

#include "cluster/documents/state.h"
#include "common/error.h"
#include "ec/code.h"
#include "target/slices/plan.h"

struct target;

/* "http://…/v1/slices/7/00f3….1?"; the caller's to free. */
char *ec_slice_url(const struct node *n, uint64_t bucket_id, uint64_t tag, unsigned index);
/* The same with what a PUT needs.  sync: it is on the disk before the reply. */
char *ec_slice_put_url(const struct node *n, uint64_t bucket_id, uint64_t tag, unsigned index,
                       const char *object, bool sync);

/* Has the target remove it.  E_STALE_MAP where it knows other owners than this state's.  Waits. */
int ec_slice_delete(struct target *t, const struct cluster_state *s, const struct node *n,
                    uint64_t bucket_id, uint64_t tag, unsigned index, struct error *err);

/* What is asked for. */
struct ec_find {
    uint64_t bucket_id;
    const char *name;
    uint64_t tag;
    unsigned slices;
    bool removes; /* the answers are for ec_slice_delete() */
};

/* Asks every target of the map that is not unreachable which slices it has, side by side.  *found:
 * as many as the map has targets, those that rank first for the name first; the caller's to free.
 * Waits. */
size_t ec_slices_find(struct target *t, const struct cluster_state *s, const struct ec_find *what,
                      struct ec_found **found);
