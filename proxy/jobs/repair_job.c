#include "proxy/jobs/repair_job.h"

#include "cluster/placement/lag.h"
#include "cluster/documents/layout.h"
#include "cluster/documents/settings.h"
#include "common/buf.h"
#include "proxy/jobs/standing_job.h"

static const char kind[] = "repair";

/* --- the fence -------------------------------------------------------------------------------- */

static struct standing_fence fence(const struct cluster_state *s)
{
    return (struct standing_fence){{s->smap.lagged, s->smap.placed, lag_raised(&s->bmd)}};
}

static bool is_of(const struct job *job, const struct standing_fence *f)
{
    return standing_is(job, kind) && standing_number(job, "lagged") == f->numbers[0] &&
           standing_number(job, "placed") == f->numbers[1] &&
           standing_number(job, "raised") == f->numbers[2];
}

/* --- jobs ------------------------------------------------------------------------------------- */

/* The last one that was made for the present fence. */
static const struct job *last_of_present(const struct cluster_state *s)
{
    const struct standing_fence now = fence(s);
    const struct job *last = NULL;
    for (size_t i = 0; i < s->jobs.count; i++) {
        if (is_of(s->jobs.jobs[i], &now))
            last = s->jobs.jobs[i];
    }
    return last;
}

/* Those that answer. */
static bool takes(const struct node *n)
{
    return n->state == NODE_ACTIVE && node_is_present(n);
}

/* Whom it goes without. */
static char *describe(const struct cluster_state *s)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_printf(&text, "by map %llu", (unsigned long long)s->smap.version);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role != NODE_TARGET || takes(n))
            continue;
        if (n->state == NODE_UNREACHABLE)
            buf_printf(&text, "; without '%s', which does not answer and is awaited", n->id);
        else if (n->state == NODE_ACTIVE)
            buf_printf(&text, "; without '%s', which lacks mountpaths", n->id);
    }
    return buf_steal(&text);
}

static int check_makes(const struct cluster_state *s, struct error *err)
{
    int code = standing_check_none(s, kind, err);
    if (code != 0)
        return code;
    if (!bmd_has_copies(&s->bmd))
        return error_set(err, E_INVALID, "no bucket keeps more than one copy");
    if (!layout_is_settled(&s->smap))
        return error_set(err, E_JOB_STATE,
                         "objects are being moved to new owners; a repair comes after that");
    if (smap_count(&s->smap, NODE_TARGET, NODE_ACTIVE) == 0)
        return error_set(err, E_NO_TARGETS, "the cluster has no active target");
    return 0;
}

static int make(const struct cluster_state *s, int64_t wall_ms, struct job **out, struct error *err)
{
    int code = check_makes(s, err);
    if (code != 0)
        return code;
    const struct standing_fence f = fence(s);
    struct job *job =
        standing_new(kind, wall_ms,
                     json_pack("{s:I, s:I, s:I}", "lagged", (json_int_t)f.numbers[0], "placed",
                               (json_int_t)f.numbers[1], "raised", (json_int_t)f.numbers[2]));
    job->description = describe(s);
    standing_take(s, takes, job);
    *out = job;
    return 0;
}

static int fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    if (standing_number(job, "lagged") == s->smap.lagged &&
        standing_number(job, "placed") == s->smap.placed)
        return 0;
    return error_set(
        err, E_ABORTED,
        "a target has fallen behind or come back meanwhile, or the owners have changed; "
        "a repair by the new map follows");
}

/* --- what is next ----------------------------------------------------------------------------- */

static bool changes(const struct cluster_state *s, const struct command *cmd)
{
    _cleanup_state_ const struct cluster_state *next = NULL;
    return command_apply(s, cmd, &next, NULL) == 0 && next != s;
}

/* What follows from all targets' having been through, under the present fence. */
static bool close_next(const struct cluster_state *s, struct command *cmd)
{
    const struct standing_fence f = fence(s);
    cmd->lagged = f.numbers[0];
    cmd->placed = f.numbers[1];
    cmd->raised = f.numbers[2];
    cmd->kind = CMD_LAG_DONE;
    if (changes(s, cmd))
        return true;
    cmd->kind = CMD_COPIES_FILLED;
    return changes(s, cmd);
}

/* Would it do any good? */
static bool is_needed(const struct cluster_state *s)
{
    struct command done = {.wall_ms = 0};
    return close_next(s, &done);
}

static bool is_due(const struct cluster_state *s, const struct job *last,
                   const struct standing_now *now)
{
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    return settings.repair && now->stood_ms >= settings.repair_delay && is_needed(s) &&
           standing_may_follow(last, REPAIR_RETRY_MS, now->wall_ms);
}

static bool next(const struct cluster_state *s, const struct standing_now *now, struct command *cmd)
{
    *cmd = (struct command){.wall_ms = now->wall_ms};
    const struct job *last = last_of_present(s);
    if (!bmd_has_copies(&s->bmd) || (last != NULL && last->state == JOB_FINISHED))
        return close_next(s, cmd);
    struct job *job;
    if (!is_due(s, last, now) || make(s, now->wall_ms, &job, NULL) != 0)
        return false;
    return standing_create(job, now->wall_ms, cmd);
}

const struct job_kind repair_kind = {
    .name = kind,
    .load = JOB_FREE,
    .outlasts_members = true,
    .fence = fence,
    .make = make,
    .fits = fits,
    .next = next,
};
