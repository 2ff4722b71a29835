/* Which counters of a session have been used: each is taken once, in any order, as long as it is
 * not further behind the greatest one than the window is wide.  That is how far requests of one
 * session may overtake one another on their connections.  Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { AUTH_WINDOW = 4096 };

/* All zero: nothing has been taken.  Counters begin with 1. */
struct auth_window {
    uint64_t top;                     /* the greatest one taken */
    uint64_t taken[AUTH_WINDOW / 64]; /* of top - AUTH_WINDOW + 1 .. top, a bit for each */
};

/* False: it has been taken, or is too far behind to tell. */
bool auth_window_take(struct auth_window *w, uint64_t counter);
