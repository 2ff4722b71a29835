/* The erasure code of a bucket, in one word: "4+2", four slices of data and two of parity, or
 * "4+2:64KiB", and objects up to 64 KiB are whole copies.  As JSON: {"data": 4, "parity": 2,
 * "min_size": 65536}. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/error.h"

struct ec_shape {
    uint64_t data, parity, min_size;
};

/* Either form; what is not said of min_size stays.  Whether there can be such a code is not asked
 * here. */
int ec_shape_from_json(json_t *value, struct ec_shape *out, struct error *err);
