#include "target/repair_wanted.h"

#include "common/log.h"
#include "common/metrics.h"

void repair_wanted(struct target *t, uint64_t bucket_id, const char *name)
{
    (void)t;
    metric_add(metric_get(M_repairs_wanted_total, NULL), 1);
    log_warn("a good copy is wanted", lu64("bucket_id", bucket_id), lstr("name", name));
}
