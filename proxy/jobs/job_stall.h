/* dfc_jobs_stalled_seconds: for how long the reports of a running job have shown no progress.
 *
 * Progress is any change of a report's texts, integers or truth values.  Fractions and what is in
 * "seconds" do not count: they are times and rates, which go on by themselves.  The jobs are looked
 * at when somebody asks for the metrics, so a time is exact to the interval of scrapes.
 *
 * Pure but for the metric.  The owner has the lock. */
#pragma once

#include <jansson.h>
#include <stdint.h>

struct job;
struct jobs;
struct job_stalls;

typedef json_t *job_reports_fn(void *ctx, const char *job_id); /* {"t1": report, …} */

struct job_stalls *job_stalls_new(void);
void job_stalls_free(struct job_stalls *s);
/* Looks at the jobs that run, and forgets all others.  jobs NULL: this proxy is not the primary. */
void job_stalls_look(struct job_stalls *s, const struct jobs *jobs, job_reports_fn *reports,
                     void *ctx, uint64_t now_ms);
/* How long it has stood still at the last look; 0 for an unknown job. */
uint64_t job_stalls_ms(const struct job_stalls *s, const char *job_id);
