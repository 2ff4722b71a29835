#include "proxy/jobs/job_count.h"

#include <stdio.h>
#include <string.h>

#include "cluster/documents/job.h"
#include "common/metrics.h"
#include "xaction/kinds.h"

static void count_kind(const char *kind)
{
    char label[64];
    snprintf(label, sizeof label, "kind=\"%s\"", kind);
    metric_add(metric_get(M_jobs_failed_total, label), 1);
}

void job_count_failure(const struct job *job)
{
    const struct xaction_kind *kind = xaction_kind_find(job->kind);
    if (job->state != JOB_FAILED)
        return;
    count_kind(job->kind);
    if (kind != NULL && strcmp(kind->shown, kind->name) != 0)
        count_kind(kind->shown);
}
