/* Jobs that run one function of the target, once, and count what it did.  A kind is what is in
 * struct once_job_work, and an open() that hands it on:
 *
 *   static int job_open(void *host, const struct job *job, void **self, struct error *err)
 *   {
 *       return once_job_open(host, job, &work, self, err);
 *   }
 *   const struct xaction_ops x_xaction = ONCE_JOB_OPS("x", job_open); */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stddef.h>

#include "xaction/xaction.h"

struct target;

enum { ONCE_JOB_COUNT_MAX = 64 };

struct once_job_work {
    size_t count_size; /* at most ONCE_JOB_COUNT_MAX; zeroed at the start */
    int (*run)(struct target *t, const atomic_bool *stop, void *count, struct error *err);
    /* A new object: "objects" and whatever else the report has of it (proxy/jobs/objects_view.h).
     */
    json_t *(*show)(const void *count);
};

int once_job_open(void *host, const struct job *job, const struct once_job_work *work, void **self,
                  struct error *err);
int once_job_run(void *self, struct error *err);
void once_job_stop(void *self);
json_t *once_job_status(void *self);
void once_job_free(void *self);

#define ONCE_JOB_OPS(kind_name, open_fn) \
    XACTION_WORK(kind_name, open_fn, once_job_run, once_job_stop, once_job_status, once_job_free)
