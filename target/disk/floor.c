#include "target/disk/floor.h"

#include "common/log.h"

enum { STRIDE_MIN = 1023 };

uint64_t floor_in_force(const struct mountpaths *m)
{
    uint64_t floor = 0;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++) {
        uint64_t one = life_floor(set->all[i]->life);
        floor = one > floor ? one : floor;
    }
    return floor;
}

static uint64_t one_step_up(const struct mountpaths *m)
{
    return (floor_in_force(m) / LIFE_STEP + 1) * LIFE_STEP;
}

void floor_begin(struct mountpaths *m, bool step)
{
    uint64_t floor = step ? one_step_up(m) : floor_in_force(m);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++) {
        struct mountpath *mp = set->all[i];
        struct error err = ERROR_INIT;
        int code = life_begin(mp->life, floor, &err);
        if (mountpath_failed(mp, code) != 0)
            log_warn("mountpath not written to", lstr("mountpath", mp->path), lerr(&err));
    }
}

int floor_join(struct mountpaths *m, struct mountpath *mp, struct error *err)
{
    uint64_t floor = floor_in_force(m), own = life_floor(mp->life);
    bool lost = life_power_lost(mp->life);
    int code = mountpath_failed(mp, life_begin(mp->life, own > floor ? own : floor, err));
    return code == 0 && lost ? floor_step(m, err) : code;
}

/* On all that can be written to, and one at least: in force is the greatest. */
static int raise_all(struct mountpaths *m, uint64_t floor, struct error *err)
{
    size_t raised = 0;
    struct error why = ERROR_INIT;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    for (size_t i = 0; i < set->count; i++) {
        struct mountpath *mp = set->all[i];
        raised += mountpath_failed(mp, life_raise(mp->life, floor, &why)) == 0;
    }
    return raised > 0 ? 0 : error_set(err, why.code, "%s", why.message);
}

int floor_cover(struct mountpaths *m, uint64_t counter, struct error *err)
{
    if (counter <= floor_in_force(m))
        return 0;
    uint64_t stride = STRIDE_MIN, above = counter % LIFE_STEP;
    while (stride < above)
        stride = stride * 2 + 1;
    return raise_all(m, counter - above + stride, err);
}

int floor_step(struct mountpaths *m, struct error *err)
{
    return raise_all(m, one_step_up(m), err);
}
