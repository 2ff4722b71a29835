/* The version of an object: of two copies of one object, the greater version wins, always.
 *
 *   term     the cluster's term when it was written
 *   map      the version of the cluster's state, map included, under which it was written
 *   counter  1, 2, 3 … for writes under one state, from the floor on
 *
 * Compared in this order.  An owner gives each write a version greater than any that it has seen
 * of the object, tombstones included, and greater than (term, map, 0).  What it no longer knows (a
 * tombstone that was forgotten, an object that is damaged or was lost with power) stays below the
 * floor, a counter that only grows (floor.h): no version comes twice.  Text form: "1.7.3", which is
 * also the inside of the object's ETag. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct version {
    uint64_t term;
    uint64_t map;
    uint64_t counter;
};

#define VERSION_TEXT_MAX 64 /* three numbers of 20 digits, two dots and the NUL */

int version_compare(const struct version *a, const struct version *b); /* <0, 0, >0 */
/* The version of a write under (term, map) over `old` (NULL: none is known). */
struct version version_next(const struct version *old, uint64_t term, uint64_t map, uint64_t floor);
const char *version_format(const struct version *v, char out[static VERSION_TEXT_MAX]);
int version_parse(const char *text, struct version *out, struct error *err);
/* Was it written under a later state of the cluster than (term, map)? */
bool version_is_after(const struct version *v, uint64_t term, uint64_t map);
