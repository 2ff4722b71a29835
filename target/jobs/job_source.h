/* An object that a job reads and that is this target's to work on: opened, whole, and what came
 * after the job left alone.
 *
 * Of a bucket with a backend it is brought here first.  Of several copies it is known that all
 * owners have the same; a damaged one is mended from another.  Owners that do not answer are
 * waited for. */
#pragma once

#include "target/jobs/job_base.h"

/* The object's descriptor is the caller's. */
typedef int job_source_fn(void *ctx, const struct object *o, struct error *err);

/* fn() with the object open; again where it fails and that may pass, so that it may be called
 * several times.  E_OBJECT_NOT_FOUND; E_PRECONDITION: within one bucket, it came after the job;
 * E_ABORTED where the job shall end. */
int job_source_work(struct job_base *j, const char *name, job_source_fn *fn, void *ctx,
                    struct error *err);
/* Reads all of it.  E_CHECKSUM: it is damaged. */
int job_source_verify(struct job_base *j, const struct object *o, struct error *err);
