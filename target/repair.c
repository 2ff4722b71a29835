#include "target/repair.h"

#include "cluster/settings.h"
#include "common/clock.h"
#include "target/copies.h"
#include "target/ec_repair.h"
#include "target/spread.h"
#include "target/target.h"

enum { WAIT_MS = 200, RESILVER_WAIT_MS = 30000 };

static int check_map(void *ctx, const struct cluster_state *s, struct error *err)
{
    const struct repair *r = ctx;
    if (s->smap.placed == r->placed && s->smap.lagged == r->lagged)
        return 0;
    return error_set(err, E_STALE_MAP, "the map has changed: a later repair goes on");
}

static bool is_settled(const struct target *t)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    return set->settled;
}

/* A resilver moves names past a walk.  After some time what is found is brought all the same: that
 * may be what the resilver lacks; but the repair was not through everything then. */
static int wait_for_resilver(const struct repair *r, struct error *err)
{
    const uint64_t until_ms = clock_ms() + RESILVER_WAIT_MS;
    struct error why;
    error_set(&why, E_NOT_READY, "objects are being moved between the mountpaths");
    while (!is_settled(r->target) && clock_ms() < until_ms) {
        job_tally_wait(r->tally, &why);
        if (!job_stop_pause(r->stop, WAIT_MS))
            return error_set(err, E_ABORTED, "the repair was stopped");
        job_tally_wait(r->tally, NULL);
    }
    return 0;
}

static int wait_for_index(const struct repair *r, struct mountpath *mp, struct error *err)
{
    while (index_check(mp->index, err) == E_NOT_READY) {
        job_tally_wait(r->tally, err);
        if (!job_stop_pause(r->stop, WAIT_MS))
            return error_set(err, E_ABORTED, "the repair was stopped");
        job_tally_wait(r->tally, NULL);
    }
    return index_check(mp->index, err);
}

static int repair_mountpath(const struct spread *spread, const struct cluster_state *s,
                            struct mountpath *mp, struct error *err)
{
    struct ec_walk walk = {0}; /* one is enough: under one map nobody brings manifests later */
    int code = wait_for_index(spread->ctx, mp, err);
    for (size_t i = 0; i < s->bmd.count && code == 0; i++) {
        if (copies_are_several(&s->bmd.buckets[i]))
            code = spread_bucket(spread, mp, s->bmd.buckets[i].id, err);
        if (code == 0 && s->bmd.buckets[i].props.ec_data > 0)
            code = ec_repair_bucket(spread, mp, s->bmd.buckets[i].id, &walk, err);
    }
    return code;
}

static int repair_all(const struct spread *spread, const struct cluster_state *s,
                      const struct mountpath_set *set, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < set->count && code == 0; i++)
        code = repair_mountpath(spread, s, set->all[i], err);
    return code;
}

/* Of everything first what one more loss would take away; what was then left, if anything was. */
static int repair_by_danger(const struct repair *r, struct job_pace *pace,
                            const struct cluster_state *s, const struct mountpath_set *set,
                            struct error *err)
{
    bool put_off = false;
    struct spread spread = {.target = r->target,
                            .stop = r->stop,
                            .tally = r->tally,
                            .pace = pace,
                            .check = check_map,
                            .ctx = (void *)r,
                            .put_off = &put_off};
    int code = repair_all(&spread, s, set, err);
    spread.put_off = NULL;
    return code == 0 && put_off ? repair_all(&spread, s, set, err) : code;
}

static uint64_t rate_now(void *ctx)
{
    const struct target *t = ctx;
    struct cluster_settings settings;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    cluster_settings_get(&s->config, &settings);
    return settings.repair_rate;
}

int repair_run(const struct repair *r, struct error *err)
{
    struct target *t = r->target;
    struct job_pace pace;
    int code = wait_for_resilver(r, err);
    if (code != 0)
        return code;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    code = check_map((void *)r, s, err);
    if (code == 0)
        code = mountpath_set_check_whole(set, err);
    object_store_settle(t->store);
    job_pace_init_by(&pace, rate_now, t, r->stop);
    if (code == 0)
        code = repair_by_danger(r, &pace, s, set, err);
    if (code == 0)
        code = mountpath_set_check_still(set, err);
    job_pace_done(&pace);
    return code != 0 ? code : job_tally_end(r->tally, err);
}
