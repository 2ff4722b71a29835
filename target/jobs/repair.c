#include "target/jobs/repair.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/documents/job.h"
#include "cluster/documents/settings.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "io/file.h"
#include "target/copies/copies.h"
#include "target/slices/repair.h"
#include "target/jobs/repair_walk.h"
#include "target/copies/dirty_worker.h"
#include "target/copies/antientropy.h"
#include "target/node/target.h"

enum { WAIT_MS = 200, PEER_WAIT_MS = 30000, FILE_MODE = 0640, FILE_BYTES_MAX = 1 << 20 };

struct run {
    const struct repair *r;
    const struct cluster_state *state;
    struct repair_walk walk;
    uint64_t saved_ms;
};

static int check_map(void *ctx, const struct cluster_state *s, struct error *err)
{
    const struct run *run = ctx;
    if (s->smap.placed == run->r->placed && s->smap.lagged == run->r->lagged)
        return 0;
    return error_set(err, E_STALE_MAP, "the map has changed: a later repair continues");
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

static int wait_for_indexes(const struct repair *r, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(r->target->mountpaths);
    int code = 0;
    for (size_t i = 0; i < set->count && code == 0; i++)
        code = wait_for_index(r, set->all[i], err);
    return code;
}

/* --- what is wanted --------------------------------------------------------------------------- */

/* One that does not say, or is of an earlier build that cannot, is no reason not to repair what
 * others lack. */
static int ask_peer(const struct run *run, const struct node *n, uint64_t until_ms,
                    struct repair_peer *p, struct error *err)
{
    const struct repair *r = run->r;
    struct dirty_loss loss = {.steps = REPAIR_UNKNOWN};
    struct error why = ERROR_INIT;
    int code;
    while ((code = dirty_ask_loss(r->target, run->state, n, &loss, &why)) != 0 &&
           code != E_INVALID && clock_ms() < until_ms) {
        job_tally_wait(r->tally, &why);
        if (!job_stop_pause(r->stop, WAIT_MS))
            return error_set(err, E_ABORTED, "the repair was stopped");
        job_tally_wait(r->tally, NULL);
    }
    *p = (struct repair_peer){.id = xstrdup(n->id),
                              .boot = xstrdup(n->boot),
                              .steps = code == 0 ? loss.steps : REPAIR_UNKNOWN,
                              .quarantine = loss.quarantine};
    return 0;
}

static int need_of(const struct run *run, struct repair_need *need, struct error *err)
{
    const struct cluster_state *s = run->state;
    const uint64_t until_ms = clock_ms() + PEER_WAIT_MS; /* of all */
    int code = 0;
    *need = (struct repair_need){.placed = s->smap.placed,
                                 .lagged = s->smap.lagged,
                                 .peers = xcalloc(s->smap.count, sizeof *need->peers)};
    for (size_t i = 0; i < s->bmd.count; i++) {
        uint64_t raised = s->bmd.buckets[i].raised;
        need->raised = raised > need->raised ? raised : need->raised;
    }
    for (size_t i = 0; i < s->smap.count && code == 0; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role != NODE_TARGET || n->state != NODE_ACTIVE || !node_is_present(n) ||
            strcmp(n->id, run->r->target->id) == 0)
            continue;
        code = ask_peer(run, n, until_ms, &need->peers[need->count], err);
        need->count += code == 0;
    }
    return code;
}

/* --- where it is ------------------------------------------------------------------------------ */

static char *path_of(const struct mountpath *mp)
{
    return xprintf("%s/.dfc/repair.json", mp->path);
}

/* On one mountpath: without it the next repair begins anew. */
static void save(struct run *run)
{
    struct error err = ERROR_INIT;
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(run->r->target->mountpaths);
    run->saved_ms = clock_ms();
    if (run->walk.watch == 0 || set->count == 0)
        return;
    _cleanup_free_ char *path = path_of(set->all[0]);
    _cleanup_json_ json_t *doc = repair_walk_to_json(&run->walk);
    _cleanup_free_ char *text = json_text(doc);
    if (file_replace(path, text, strlen(text), FILE_MODE, &err) != 0)
        log_warn("repair goes on without saying where it is", lstr("path", path), lerr(&err));
}

/* E_NOT_FOUND; or what is wrong with it. */
static int load_from(struct repair_walk *w, const struct mountpath *mp, struct error *err)
{
    _cleanup_free_ char *path = path_of(mp);
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    int code = file_read_all(path, FILE_BYTES_MAX, &text, err);
    if (code == 0)
        code = json_parse(buf_str(&text), text.len, &doc, err);
    if (code == 0)
        code = repair_walk_from_json(w, doc, err);
    return code;
}

/* That of the watch which the indexes have: there may be older ones. */
static void load(struct run *run)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(run->r->target->mountpaths);
    for (size_t i = 0; i < set->count && run->walk.watch == 0; i++) {
        const struct mountpath *mp = set->all[i];
        struct error err = ERROR_INIT;
        int code = load_from(&run->walk, mp, &err);
        if (code != 0 && code != E_NOT_FOUND)
            log_warn("what a repair has saved is not used", lstr("mountpath", mp->path),
                     lerr(&err));
        if (code != 0 || run->walk.watch != index_watched(mp->index))
            repair_walk_done(&run->walk);
    }
}

/* Not where the last one has finished: then another one is wanted for what came after it. */
static bool is_unfinished(const struct run *run)
{
    const struct job *last = jobs_find(&run->state->jobs, run->walk.job);
    return last != NULL && last->state != JOB_FINISHED;
}

static void begin_anew(struct run *run, struct repair_need *need)
{
    uint64_t watch;
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(run->r->target->mountpaths);
    random_bytes(&watch, sizeof watch);
    watch = watch % INT64_MAX + 1;
    repair_walk_begin(&run->walk, watch, need);
    for (size_t i = 0; i < set->count; i++)
        index_watch(set->all[i]->index, watch);
}

static int take_up(struct run *run, struct error *err)
{
    struct repair_need need;
    int code = need_of(run, &need, err);
    if (code == 0) {
        load(run);
        if (run->walk.watch == 0 || !is_unfinished(run) || !repair_walk_go_on(&run->walk, &need))
            begin_anew(run, &need);
        free(run->walk.job);
        run->walk.job = xstrdup(run->r->job_id);
        save(run);
    }
    repair_need_done(&need);
    return code;
}

static bool passed(void *ctx, uint64_t bucket_id, const char *name)
{
    const struct run *run = ctx;
    bool changed = false;
    if (!repair_walk_passed(&run->walk, bucket_id, name))
        return false;
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(run->r->target->mountpaths);
    for (size_t i = 0; i < set->count && !changed; i++)
        changed = index_may_have_changed(set->all[i]->index, run->walk.watch, bucket_id, name);
    return !changed;
}

static void reached(void *ctx, uint64_t bucket_id, const char *name)
{
    struct run *run = ctx;
    repair_walk_reach(&run->walk, bucket_id, name);
    if (clock_ms() - run->saved_ms >= run->r->target->params.repair_save_interval)
        save(run);
}

/* The next attempt looks at it again. */
static void resists(void *ctx, uint64_t bucket_id, const char *name)
{
    const struct run *run = ctx;
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(run->r->target->mountpaths);
    for (size_t i = 0; i < set->count; i++)
        index_assume_changed(set->all[i]->index, bucket_id, name);
}

/* --- the walks -------------------------------------------------------------------------------- */

/* Where anything could not be repaired the buckets from there on are looked at again. */
static int repair_slices(struct run *run, const struct antientropy *antientropy, uint64_t bucket_id,
                         struct ec_walk *walk, struct error *err)
{
    if (bucket_id <= run->walk.slices)
        return 0;
    int code = ec_repair_bucket(antientropy, NULL, bucket_id, walk, err);
    if (code == 0 && job_tally_failed(antientropy->tally) == 0)
        run->walk.slices = bucket_id;
    return code;
}

static int by_id(const void *a, const void *b)
{
    const struct bucket *const *x = a, *const *y = b;
    return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

static int repair_all(struct run *run, const struct antientropy *antientropy, struct error *err)
{
    struct ec_walk walk = {0}; /* one is enough: under one map nobody brings manifests later */
    const struct bmd *bmd = &run->state->bmd;
    _cleanup_free_ const struct bucket **buckets = xcalloc(bmd->count + 1, sizeof *buckets);
    int code = 0;
    for (size_t i = 0; i < bmd->count; i++)
        buckets[i] = &bmd->buckets[i];
    qsort(buckets, bmd->count, sizeof *buckets, by_id);
    for (size_t i = 0; i < bmd->count && code == 0; i++) {
        if (bucket_has_copies(buckets[i]))
            code = antientropy_bucket(antientropy, NULL, buckets[i]->id, err);
        if (code == 0 && buckets[i]->props.ec_data > 0)
            code = repair_slices(run, antientropy, buckets[i]->id, &walk, err);
    }
    return code;
}

/* Of everything first what one more loss would take away; what was then left, if anything was. */
static int repair_by_danger(struct run *run, struct job_pace *pace, struct error *err)
{
    static const struct antientropy_walk walk = {
        .passed = passed, .reached = reached, .resists = resists};
    struct antientropy antientropy = {.target = run->r->target,
                                      .stop = run->r->stop,
                                      .tally = run->r->tally,
                                      .pace = pace,
                                      .check = check_map,
                                      .walk = &walk,
                                      .ctx = run,
                                      .put_off = &run->walk.put_off};
    int code = run->walk.second ? 0 : repair_all(run, &antientropy, err);
    if (code != 0)
        return code;
    bool left = run->walk.second || run->walk.put_off;
    antientropy.put_off = NULL;
    if (!run->walk.second)
        repair_walk_turn(&run->walk);
    if (left)
        code = repair_all(run, &antientropy, err);
    if (code == 0)
        repair_walk_reach(&run->walk, REPAIR_ALL, "");
    if (code == 0 && job_tally_failed(run->r->tally) == 0)
        run->walk.slices = REPAIR_ALL;
    return code;
}

static uint64_t rate_now(void *ctx)
{
    const struct target *t = ctx;
    struct cluster_settings settings;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    cluster_settings_get(&s->config, &settings);
    return settings.repair_rate;
}

/* Who was about to change a name when the walk began has done so before the names are read. */
static int go_through(struct run *run, struct error *err)
{
    struct job_pace pace;
    struct target *t = run->r->target;
    int code = check_map(run, run->state, err);
    if (code == 0)
        code = take_up(run, err);
    if (code != 0)
        return code;
    object_store_settle(t->store);
    job_pace_init_by(&pace, rate_now, t, run->r->stop);
    code = repair_by_danger(run, &pace, err);
    job_pace_done(&pace);
    save(run);
    return code != 0 ? code : job_tally_end(run->r->tally, err);
}

int repair_run(const struct repair *r, struct error *err)
{
    int code = wait_for_indexes(r, err);
    if (code != 0)
        return code;
    struct run run = {.r = r, .state = state_current(r->target->state)};
    code = go_through(&run, err);
    repair_walk_done(&run.walk);
    state_unref(run.state);
    return code;
}
