#include "target/copies/repair_wanted.h"

#include "common/log.h"
#include "common/metrics.h"
#include "target/copies/copies.h"
#include "target/format/ec_manifest.h"
#include "target/copies/unrecoverable.h"
#include "target/copies/read_repair.h"
#include "target/node/target.h"

void repair_wanted(struct target *t, uint64_t bucket_id, const char *name)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    if (ec_is_slices_bucket(bucket_id)) {
        metric_add(metric_get(M_repairs_wanted_total, NULL), 1);
        t->slices->wanted(t, bucket_id, name);
        return;
    }
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, bucket_id);
    metric_add(metric_get(M_repairs_wanted_total, NULL), 1);
    log_warn("a good copy is wanted", lu64("bucket_id", bucket_id), lstr("name", name));
    if (b != NULL && bucket_has_copies(b))
        read_repair_doubt(t->copies->read_repair, bucket_id, name);
    else if (b != NULL && b->props.backend == NULL)
        unrecoverable_note(t->unrecoverable, bucket_id, name, 0);
}
