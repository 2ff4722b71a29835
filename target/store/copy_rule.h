/* May a copy take the place of what its new name holds?  Asked by the new name's owner, under the
 * name's lock: pure.
 *
 *   same bytes (size and checksum of one kind)       E_NOT_MODIFIED: nothing to do
 *   written under a later state than the job's        E_PRECONDITION: it is newer, and stays
 *   another one of a bucket that is write_once        E_WRITE_ONCE: it stays */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/checksum.h"
#include "common/error.h"

struct attr;

struct copy_rule {
    uint64_t size;
    struct checksum_value checksum; /* of the original; type none: never the same */
    uint64_t term, version;
    bool write_once; /* what is there stays */
};

/* An object_condition's check; ctx is the rule. */
int copy_rule_check(void *ctx, const struct attr *current, struct error *err);
