/* Where the bytes of a part go.  Parts in the file `body` lie where the object will have them if
 * all parts but the last have one size, so that a completion copies nothing.  Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PART_SIZE_MIN (5ULL << 20)  /* bytes, of each part but the last */
#define PART_PLACE_MAX (8ULL << 40) /* bytes of the body: half of what a file of ext4 may have */

struct part_place {
    bool in_body; /* else the part needs a side file */
    uint64_t offset;
};

/* `unit`: the size that fixes the places of parts, 0 before one has fixed it; the first part of
 * PART_SIZE_MIN bytes or more does.  `sent_before`: a part of this number is stored or on its way.
 * `number` and `size` are within the limits of part_log.h. */
struct part_place part_place_choose(uint64_t *unit, bool sent_before, unsigned number,
                                    uint64_t size);
