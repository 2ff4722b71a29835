/* Which jobs a list of them asks for: pure. */
#pragma once

#include <stdbool.h>

#include "cluster/documents/job.h"
#include "sort/spec/pattern.h"

#define JOB_FILTER_REGEX_MAX 256 /* bytes */

/* All zero: every job. */
struct job_filter {
    const char *kind;  /* NULL: any; both are borrowed */
    const char *state; /* as job_view_state() has it; NULL: any */
    struct patterns *patterns;
    struct pattern_search *description; /* of these; NULL: any */
};

/* Of one kind, by either of its names (xaction/kinds.h).  E_INVALID names the kinds where it is
 * none. */
int job_filter_kind(struct job_filter *f, const char *kind, struct error *err);
/* E_INVALID where it is no pattern (sort/spec/pattern.h), or has an interval: no few bytes shall
 * make a thread of the proxy work for long, or take much memory, as a regex_t of nested pluses
 * does. */
int job_filter_regex(struct job_filter *f, const char *pattern, struct error *err);
void job_filter_done(struct job_filter *f);
/* `state`: of its view. */
bool job_filter_takes(const struct job_filter *f, const struct job *job, const char *state);
