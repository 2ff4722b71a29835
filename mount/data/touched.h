/* Which blocks readers have touched of late: pure.
 *
 * A block that is touched once is read from where it is.  One that is touched again, before about
 * as many others as the buffer can hold, is worth its place there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct touched {
    size_t count;
    uint64_t *slots; /* a hash of what was touched last there; 0: nothing */
};

void touched_init(struct touched *t, size_t count); /* of blocks, at least 1 */
void touched_done(struct touched *t);
/* Now it is touched: was it before? */
bool touched_again(struct touched *t, const void *entity, uint64_t index);
