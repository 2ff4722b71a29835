/* The slices of one object, read over the data network: an ec_source (ec/read.h) of those that were
 * there when it was made, read ahead slice by slice.  A range of the object is read through
 * ec_source_range(), which asks everybody anew when the first guess has failed.
 *
 * Belongs to one thread, which waits. */
#pragma once

#include "ec/read.h"
#include "target/format/ec_manifest.h"

struct cluster_state;
struct target;

struct ec_reading {
    struct target *target;
    const struct cluster_state *state;
    uint64_t bucket_id;
    const char *name;
    struct ec_manifest manifest;
};

/* Slices that were asked for … */
struct ec_bad {
    ec_mask failed;  /* … and not got where they had to be, or damaged */
    ec_mask damaged; /* … and damaged */
};

/* The bytes of the object, in order, in pieces.  E_NODE_UNREACHABLE, E_CORRUPT (ec_plan_check);
 * what take() says. */
int ec_source_range(const struct ec_reading *r, uint64_t offset, uint64_t len, ec_take_fn *take,
                    void *ctx, struct ec_bad *bad, struct error *err);
/* All bytes of an object whose file is a manifest: struct slices_hooks (node/target.h). */
struct object;
int ec_source_each(struct target *t, uint64_t bucket_id, const struct object *o, ec_take_fn *take,
                   void *ctx, struct error *err);
/* What a read has found so is made anew (slices/slice_repair.h). */
void ec_source_report(const struct ec_reading *r, const struct ec_bad *bad);
struct ec_homes;
/* The file of a slice out of its own good blocks, and out of others: those at `homes`.  Adds to
 * *damaged. */
int ec_source_rebuild(const struct ec_reading *r, const struct ec_homes *homes, unsigned slice,
                      ec_take_fn *take, void *ctx, ec_mask *damaged, struct error *err);
