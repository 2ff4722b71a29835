#include "target/disk/version_floor.h"

#include "common/log.h"

enum { STRIDE_MIN = 1023 };

uint64_t version_floor_in_force(const struct mountpaths *m)
{
    uint64_t floor = 0;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++) {
        uint64_t one = crash_state_floor(set->all[i]->crash_state);
        floor = one > floor ? one : floor;
    }
    return floor;
}

static uint64_t one_step_up(const struct mountpaths *m)
{
    return (version_floor_in_force(m) / VERSION_FLOOR_STEP + 1) * VERSION_FLOOR_STEP;
}

void version_floor_begin(struct mountpaths *m, bool step)
{
    uint64_t floor = step ? one_step_up(m) : version_floor_in_force(m);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++) {
        struct mountpath *mp = set->all[i];
        struct error err = ERROR_INIT;
        int code = crash_state_begin(mp->crash_state, floor, &err);
        if (mountpath_failed(mp, code) != 0)
            log_warn("mountpath not written to", lstr("mountpath", mp->path), lerr(&err));
    }
}

int version_floor_join(struct mountpaths *m, struct mountpath *mp, struct error *err)
{
    uint64_t floor = version_floor_in_force(m), own = crash_state_floor(mp->crash_state);
    bool lost = crash_state_power_lost(mp->crash_state);
    int code =
        mountpath_failed(mp, crash_state_begin(mp->crash_state, own > floor ? own : floor, err));
    return code == 0 && lost ? version_floor_step(m, err) : code;
}

/* On all that can be written to, and one at least: in force is the greatest. */
static int raise_all(struct mountpaths *m, uint64_t floor, struct error *err)
{
    size_t raised = 0;
    struct error why = ERROR_INIT;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++) {
        struct mountpath *mp = set->all[i];
        raised += mountpath_failed(mp, crash_state_raise(mp->crash_state, floor, &why)) == 0;
    }
    return raised > 0 ? 0 : error_set(err, why.code, "%s", why.message);
}

int version_floor_cover(struct mountpaths *m, uint64_t counter, struct error *err)
{
    if (counter <= version_floor_in_force(m))
        return 0;
    uint64_t stride = STRIDE_MIN, above = counter % VERSION_FLOOR_STEP;
    while (stride < above)
        stride = stride * 2 + 1;
    return raise_all(m, counter - above + stride, err);
}

int version_floor_step(struct mountpaths *m, struct error *err)
{
    return raise_all(m, one_step_up(m), err);
}
