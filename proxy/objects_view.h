/* How far a job over objects has come, out of what its targets say of themselves:
 *
 *     {"objects": {"done", "skipped", "missing", "failed", "total"}, "bytes", "seconds"}
 *
 * and, of those that compare what targets have, "names": {"compared", "passed"}.
 *
 * done: deleted, copied …; skipped: left as they were, on purpose; missing: named, and not there.
 * passed: names that an earlier attempt had compared.  Pure. */
#pragma once

#include <jansson.h>

#include "cluster/job.h"

/* The "progress" of the job's document. */
json_t *objects_view_progress(const struct job *job, const json_t *reports);
