/* How far a job over objects has come, out of what its targets say of themselves:
 *
 *     {"objects": {"done", "skipped", "missing", "failed", "total"}, "bytes", "seconds",
 *      "first_failure": {"code", "message"} where objects failed,
 *      "resumed": true where the target had begun before, and counts what was left}
 *
 * and, of those that compare what targets have, "names": {"compared", "passed"}.
 *
 * done: deleted, copied …; skipped: left as they were, on purpose; missing: named, and not there.
 * passed: names that an earlier attempt had compared.  Pure. */
#pragma once

#include <jansson.h>

#include <stdbool.h>

#include "cluster/documents/job.h"
#include "common/error.h"

/* When all targets have done their part: 0, or E_NOTHING_MATCHED where the job's prefix, template
 * or list has matched nothing, and the request does not allow that; of a download, why nothing has
 * come. */
int objects_view_outcome(const struct job *job, const json_t *reports, struct error *err);
/* Is a part of what the request names not done?  Then a warning that counts it is appended. */
bool objects_view_falls_short(const struct job *job, const json_t *reports, json_t *warnings);
/* The "progress" of the job's document. */
json_t *objects_view_progress(const struct job *job, const json_t *reports);
