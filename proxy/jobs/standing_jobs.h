/* The one step that the primary makes of all standing jobs (job_kind.h). */
#pragma once

#include "proxy/jobs/job_kind.h"

/* Since when this primary has seen each kind's fence as it is now.  Begins as {0}. */
struct standing_clocks {
    struct {
        bool seen;
        struct standing_fence fence;
        uint64_t since_ms;
    } rows[JOB_KINDS_MAX];
};
/* The fences of `s` at the time `now_ms`.  To be told of each state. */
void standing_look(struct standing_clocks *c, const struct cluster_state *s, uint64_t now_ms);
/* The first kind, in the order of kinds.def, that has something to do, and what: as its next()
 * says.  NULL: none has.  now->stood_ms is set here. */
const struct job_kind *standing_next(const struct standing_clocks *c, const struct cluster_state *s,
                                     uint64_t now_ms, struct standing_now *now,
                                     struct command *cmd);
