#include "target/uploads/part_place.h"

struct part_place part_place_choose(uint64_t *unit, bool sent_before, unsigned number,
                                    uint64_t size)
{
    if (sent_before)
        return (struct part_place){.in_body = false};
    if (*unit == 0 && size >= PART_SIZE_MIN)
        *unit = size;
    if (*unit == 0 || size > *unit || number * *unit > PART_PLACE_MAX)
        return (struct part_place){.in_body = false};
    return (struct part_place){.in_body = true, .offset = (uint64_t)(number - 1) * *unit};
}
