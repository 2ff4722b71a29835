/* The driver of jobs (proxy/jobs/jobs.h) in a proxy's control loop: its environment is the proxy's
 * snapshot, its metastore and its HTTP client, its tick a timer. */
#pragma once

#include <jansson.h>

struct proxy;
struct job_glue;

/* In the control loop's thread, at a proxy that becomes primary. */
struct job_glue *job_glue_start(struct proxy *p);
/* jobs_driver_wake(), where the proxy is primary.  In the control loop's thread. */
void job_glue_wake(struct proxy *p);
/* jobs_driver_reports(); empty where the proxy is not primary.  Any thread. */
json_t *job_glue_reports(struct proxy *p, const char *job_id);
/* A target's word that a job has moved on there.  Any thread, while the servers run. */
void job_glue_moved(struct proxy *p, const char *job_id, const char *node_id);
void job_glue_close(struct job_glue *g); /* asks no more */
void job_glue_stop(struct job_glue *g);  /* in the same thread, after the client has ended */
