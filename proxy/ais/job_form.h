/* Jobs in the forms that the SDK reads.  Pure.
 *
 *   status    {"uuid", "kind", "err", "end_time": ns since 1970, 0 while it runs, "aborted"}
 *   snapshot  of one target: {"id", "kind", "start-time", "end-time", "bck", "src-bck", "dst-bck",
 *             "stats": {"loc-objs": "4", "loc-bytes": "400"}, "aborted", "abort-err", "is_idle"}
 *
 * Times of snapshots are texts; one that has not come is the SDK's zero, the year 1.  A job that
 * has ended is idle, too: the SDK waits for some kinds until they are idle. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cluster/documents/bmd.h"
#include "cluster/documents/job.h"

/* AIStore's name of the job's kind; ours where AIStore has no such kind. */
const char *job_form_kind(const struct job *job);
/* Is it of this kind, by AIStore's name or ours?  "" is any. */
bool job_form_is_of(const struct job *job, const char *kind);
/* Our name of a kind, by either name, that is started by its name alone; NULL where it is none. */
const char *job_form_bare(const char *kind);

json_t *job_form_status(const struct job *job);
/* `report`: of the target, as xactions_report() makes it; NULL: none. */
json_t *job_form_snapshot(const struct job *job, const json_t *report, const struct bmd *bmd);

/* The texts of a time and of a number; 0 ms: one that has not come. */
json_t *job_form_time(int64_t ms);
json_t *job_form_number(json_int_t value);
