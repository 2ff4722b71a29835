/* What stands for the network between two pipes, or between a source of records and a pipe. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "io/bpipe.h"
#include "sort/task/records.h"

struct relay {
    struct bpipe *from; /* or */
    struct sort_records *records;
    struct bpipe *to;
    uint64_t cut_at;        /* so many bytes go through; UINT64_MAX: all */
    atomic_ullong *longest; /* stream, in bytes, of those that share this */
    struct error err;       /* how it ended */
};

/* Carries all bytes, and tells both ends what came of it.  Takes the pipes and the source. */
void relay_run(struct relay *r);
