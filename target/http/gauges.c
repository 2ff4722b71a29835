#include "target/http/gauges.h"

#include "common/metrics.h"
#include "target/cold/back.h"
#include "target/copies/unrecoverable.h"
#include "target/store/quarantine.h"
#include "target/node/target.h"

/* A mountpath that has left, or is not open any more, must not stay as it was last seen. */
static void forget_left(struct target *t, uint64_t generation)
{
    static const enum metric_id of_mountpaths[] = {M_mountpath_state, M_mountpath_capacity_bytes,
                                                   M_mountpath_available_bytes,
                                                   M_mountpath_quarantined};
    if (atomic_exchange(&t->shown_roster, generation) == generation)
        return;
    for (size_t i = 0; i < sizeof of_mountpaths / sizeof *of_mountpaths; i++)
        metric_zero(of_mountpaths[i]);
}

/* Every member of the roster, also those that are not open, with 1 for the state it is in. */
static void show_states(const struct roster *r)
{
    static const char *const states[] = {"enabled", "leaving", "disabled", "missing"};
    for (size_t i = 0; i < r->count; i++) {
        const struct roster_member *m = &r->members[i];
        const char *now = m->missing ? "missing" : roster_state_name(m);
        for (size_t k = 0; k < sizeof states / sizeof *states; k++) {
            _cleanup_buf_ struct buf labels = BUF_INIT;
            mountpath_path_label(m->path, &labels);
            buf_printf(&labels, ",state=\"%s\"", states[k]);
            metric_set(metric_get(M_mountpath_state, labels.data), strcmp(states[k], now) == 0);
        }
    }
}

void gauges_update(struct target *t)
{
    struct back_count back = back_count(t->back);
    metric_set(metric_get(M_back_waiting, NULL), (int64_t)back.waiting);
    metric_set(metric_get(M_back_stuck, NULL), (int64_t)back.stuck);
    metric_set(metric_get(M_back_oldest_seconds, NULL), (int64_t)(back.oldest_ms / 1000));
    metric_set(metric_get(M_objects_lost, NULL), (int64_t)unrecoverable_count(t->unrecoverable));
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    forget_left(t, set->roster->generation);
    show_states(set->roster);
    for (size_t i = 0; i < set->count; i++) {
        struct mountpath *mp = set->all[i];
        uint64_t total = 0, available = 0;
        if (mountpath_capacity(mp, &total, &available, NULL) != 0)
            mountpath_failed(mp, E_IO);
        _cleanup_buf_ struct buf labels = BUF_INIT;
        mountpath_labels(mp, &labels);
        metric_set(metric_get(M_mountpath_capacity_bytes, labels.data), (int64_t)total);
        metric_set(metric_get(M_mountpath_available_bytes, labels.data), (int64_t)available);
        uint64_t quarantined = 0;
        (void)quarantine_count(mp, &quarantined,
                               NULL); /* a disk that does not say has said so above */
        metric_set(metric_get(M_mountpath_quarantined, labels.data), (int64_t)quarantined);
    }
}
