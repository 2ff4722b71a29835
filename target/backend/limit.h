/* How many requests may wait for one backend's answer at once.  Pure.
 *
 *   an answer                   a little more: one more for each round of them
 *   429, 503, silence           half of what was under way, once for all that had begun before
 *
 * So a backend that is overloaded is asked less until it answers again, and then by and by as
 * before.  What is counted ends with the answer's head: bytes flow beside it. */
#pragma once

#include <stdint.h>

enum { LIMIT_MAX = 256 };

struct limit {
    uint64_t thousandths;
    unsigned cuts; /* so often it was halved */
};

void limit_init(struct limit *l);
unsigned limit_now(const struct limit *l); /* 1 to LIMIT_MAX */
void limit_answered(struct limit *l);
/* cuts: when the request began; running: requests under way, with this one. */
void limit_refused(struct limit *l, unsigned cuts, unsigned running);
