/* Tells the primary that a job has moved on here, so that it asks at once and not at its next tick.
 * A hint: nobody waits for it, and one that is lost costs a tick. */
#pragma once

/* As the registry of jobs calls it (xaction/xaction.h); `target` is a struct target.  Any thread.
 */
void job_notify(void *target, const char *job_id);
