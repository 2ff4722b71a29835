#include "sort/task/context.h"

#include "common/metrics.h"

void sort_count(const char *phase, uint64_t records, uint64_t bytes)
{
    char label[32];
    snprintf(label, sizeof label, "phase=\"%s\"", phase);
    metric_add(metric_get(M_sort_records_total, label), records);
    metric_add(metric_get(M_sort_bytes_total, label), bytes);
}
