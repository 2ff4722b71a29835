/* The jobs that have ended, as far as they may be forgotten: pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct job;
struct jobs;

struct ended_jobs {
    const struct job *oldest; /* borrowed; NULL where there is none */
    uint64_t count;
    uint64_t bytes; /* of their documents */
};

/* The last scrub is none of them: its result stays.  Without `measure` bytes is 0: to measure takes
 * time. */
struct ended_jobs ended_jobs(const struct jobs *jobs, bool measure);
