#include "proxy/jobs/job_report.h"

/* The first ones, and how many there were besides; a list may end with such a line already. */
static void keep_few(json_t *status, size_t few)
{
    json_t *all = json_object_get(status, "warnings");
    size_t count = json_array_size(all);
    if (count <= few)
        return;
    json_t *kept = json_array();
    for (size_t i = 0; i < few; i++)
        json_array_append(kept, json_array_get(all, i));
    json_array_append_new(kept, json_sprintf("%zu warnings, %zu of which the job's document has "
                                             "room for (etcd_request_max)",
                                             count, few));
    json_object_set_new(status, "warnings", kept);
}

json_t *job_report_brief(json_t *reports, enum job_brevity brevity)
{
    const char *id;
    json_t *report;
    if (brevity == JOB_REPORT_NONE)
        json_object_clear(reports);
    if (brevity == JOB_REPORT_WHOLE)
        return reports;
    json_object_foreach(reports, id, report) keep_few(
        json_object_get(report, "status"), brevity == JOB_REPORT_FEW_WARNINGS ? JOB_REPORT_FEW : 0);
    return reports;
}
