/* What makes a bucket a ring, in one word: "cap=100,keep=1,bytes_max=64GiB".  As JSON:
 * {"cap": 100, "keep": 1, "bytes_max": 68719476736}.  "swap=consumed" and "policy=drop" may be
 * there, too. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

#define RING_CAP_MAX UINT64_C(1000000)
#define RING_SHAPE_KEEP_MAX UINT64_C(16)
#define RING_KEEP_DEFAULT UINT64_C(1)
#define RING_BYTES_MAX_DEFAULT (UINT64_C(64) << 30)
#define RING_BYTES_MAX_LEAST (UINT64_C(1) << 20)
#define RING_SAMPLE_LEAST UINT64_C(128) /* bytes of a frame (ring/frame.h) with an empty array */

struct ring_shape {
    uint64_t cap;       /* samples of a generation */
    uint64_t keep;      /* older generations that stay readable */
    uint64_t bytes_max; /* of all that the ring holds */
    bool consumed;      /* swap=consumed: a generation stays until a group has acknowledged it */
    bool drops;         /* policy=drop: a push into a full ring that says no policy drops */
};

/* Either form; what is not said stays.  E_INVALID, E_JSON: what is wrong, and the bounds.
 * bytes_max has room for the generations that there may be, of the smallest samples. */
int ring_shape_from_json(json_t *value, struct ring_shape *out, struct error *err);
json_t *ring_shape_to_json(const struct ring_shape *shape);
