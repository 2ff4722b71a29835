/* The result of a run as one JSON document. */
#pragma once

#include <jansson.h>
#include <sys/types.h>

#include "tests/bench/load.h"

/* CPU time of processes, exited threads included: the process CPU clock of clock_getcpuclockid(3),
 * which counts nanoseconds where /proc/PID/stat counts ticks. */
struct report_cpu {
    pid_t pid;
    double begin_s;
    double end_s;
};
int report_cpu_read(pid_t pid, double *out_s); /* 0, or an errno value: no such process */

json_t *report_json(const struct load *load, const struct load_stats *stats, double elapsed_s,
                    double client_cpu_s, const struct report_cpu *cpus, unsigned cpu_count);
