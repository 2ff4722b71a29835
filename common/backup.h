/* A backup of the cluster's documents: one JSON file that says what it is and whether it is whole.
 *
 *   {"dfc_backup": 1, "release": "0.1.0", "taken_ms": 1700000000000,
 *    "checksum": {"type": "sha256", "value": "…"}, "state": {the state document}}
 *
 * The checksum is that of the state document as compact JSON with sorted keys, so that a file that
 * was only formatted anew is still good.  dfcctl makes and restores it; dfc-proxyd --import takes
 * it, too. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

bool backup_is(json_t *doc); /* or is it a bare document? */
json_t *backup_wrap(json_t *state, const char *release, int64_t taken_ms);
/* *state is borrowed from doc.  E_UNSUPPORTED: of a later format; E_CORRUPT: not whole. */
int backup_unwrap(json_t *doc, json_t **state, struct error *err);
