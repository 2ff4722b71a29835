/* The table of standing jobs, and the one step that the primary makes of all of them. */
#pragma once

#include "proxy/jobs/standing_job.h"

enum { STANDING_JOBS_MAX = 16 };

/* The n-th row, in the order in which they are asked; NULL after the last. */
const struct standing_job *standing_job_at(size_t n);
const struct standing_job *standing_job_find(const char *kind); /* or NULL */

/* Since when this primary has seen each kind's fence as it is now.  Begins as {0}. */
struct standing_clocks {
    struct {
        bool seen;
        struct standing_fence fence;
        uint64_t since_ms;
    } rows[STANDING_JOBS_MAX];
};
/* The fences of `s` at the time `now_ms`.  To be told of each state. */
void standing_look(struct standing_clocks *c, const struct cluster_state *s, uint64_t now_ms);
/* The first kind that has something to do, and what: as its next() says.  NULL: none has.
 * now->stood_ms is set here. */
const struct standing_job *standing_next(const struct standing_clocks *c,
                                         const struct cluster_state *s, uint64_t now_ms,
                                         struct standing_now *now, struct command *cmd);
