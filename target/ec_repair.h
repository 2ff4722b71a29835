/* Slices that are missing, or on targets that leave, are made anew from others, on targets that
 * have none (ec_plan.h): by the owner that acts for the name, which reads k of them and sends what
 * it makes.
 *
 * With spread.h, which brings the manifests: for the repair and the rebalance.  Waits: for a job's
 * thread. */
#pragma once

#include "target/spread.h"

/* Of the names of this bucket, with `ec`, that this mountpath has.  E_ABORTED; what check() says.
 */
int ec_repair_bucket(const struct spread *s, struct mountpath *mp, uint64_t bucket_id,
                     struct error *err);
