/* Looks at how full the mountpaths are, now and then: says so in the log when one becomes, or is no
 * longer, too full, and in the metric mountpath_space_state. */
#pragma once

#include "target/disk/mountpaths.h"
#include "target/disk/space.h"

struct space_count {
    unsigned high; /* mountpaths above space_high, those above space_out too */
    unsigned out;
    uint64_t room_bytes; /* that the mountpaths take before PUT is refused */
};

/* In one thread at a time. */
struct space_count space_watch(struct mountpaths *m, const struct space_limits *limits);
