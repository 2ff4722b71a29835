/* What users see of an object beside its version, as one number: size, checksum, content type and
 * user metadata (with it the encoding).  Owners that have one version have one rank, unless a copy
 * was made by a build that left something out.  Then the greater rank stays: it has more pairs of
 * metadata, a content type of its own counting as one; among equals a hash decides, the same on
 * every target. Pure. */
#pragma once

#include <stdint.h>

#include "target/format/attr.h"

/* 0: of a tombstone, which has nothing that could differ. */
uint64_t attr_rank(const struct attr *a);

/* Rank does not decide between two contents of one version: one of them is damaged.  0: they say
 * the same length and checksum; > 0: the first stays.  That is the one with a checksum, by which
 * damage can be found; else the longer one; else the one with the greater checksum.  The same on
 * every target. */
int attr_content_compare(uint64_t size, const struct checksum_value *sum, uint64_t other_size,
                         const struct checksum_value *other_sum);
