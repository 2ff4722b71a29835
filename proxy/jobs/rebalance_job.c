#include "proxy/jobs/rebalance_job.h"

#include "cluster/documents/layout.h"
#include "cluster/documents/settings.h"
#include "common/mem.h"
#include "proxy/jobs/standing_job.h"

static const char kind[] = "rebalance";

static uint64_t placed_of(const struct job *job)
{
    return standing_number(job, "placed");
}

static struct standing_fence fence(const struct cluster_state *s)
{
    return (struct standing_fence){{s->smap.placed}};
}

/* The last one that was made for the present owners. */
static const struct job *last_of_present(const struct cluster_state *s)
{
    const struct job *last = NULL;
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        if (standing_is(job, kind) && placed_of(job) == s->smap.placed)
            last = job;
    }
    return last;
}

/* Also those in maintenance: they have what is to be moved. */
static bool takes(const struct node *n)
{
    (void)n;
    return true;
}

static int check_makes(const struct cluster_state *s, struct error *err)
{
    int code = standing_check_none(s, kind, err);
    if (code != 0)
        return code;
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role == NODE_TARGET &&
            (n->state == NODE_UNREACHABLE || (n->state != NODE_ACTIVE && !node_is_present(n))))
            return error_set(err, E_NODE_UNREACHABLE,
                             "target '%s' does not answer, and what it holds cannot be moved; "
                             "bring it back, or take it out of the map",
                             n->id);
    }
    size_t owners = smap_count(&s->smap, NODE_TARGET, NODE_ACTIVE);
    return owners > 0 ? 0 : error_set(err, E_NO_TARGETS, "the cluster has no active target");
}

static int make(const struct cluster_state *s, int64_t wall_ms, struct job **out, struct error *err)
{
    int code = check_makes(s, err);
    if (code != 0)
        return code;
    struct job *job =
        standing_new(kind, wall_ms, json_pack("{s:I}", "placed", (json_int_t)s->smap.placed));
    job->description = xprintf("to the owners of map %llu", (unsigned long long)s->smap.placed);
    standing_take(s, takes, job);
    *out = job;
    return 0;
}

static int fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    int code = standing_check_targets(job, s, "a rebalance without it follows", err);
    if (code != 0 || placed_of(job) == s->smap.placed)
        return code;
    return error_set(err, E_ABORTED,
                     "the owners have changed; a rebalance to those of map %llu follows",
                     (unsigned long long)s->smap.placed);
}

static bool is_due(const struct cluster_state *s, const struct job *last,
                   const struct standing_now *now)
{
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    return settings.rebalance && now->stood_ms >= settings.rebalance_delay &&
           standing_may_follow(last, REBALANCE_RETRY_MS, now->wall_ms);
}

static const struct node *find_leaving(const struct smap *m)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->nodes[i].state == NODE_DECOMMISSIONING)
            return &m->nodes[i];
    }
    return NULL;
}

static bool next(const struct cluster_state *s, const struct standing_now *now, struct command *cmd)
{
    *cmd = (struct command){.wall_ms = now->wall_ms};
    if (layout_is_settled(&s->smap)) {
        const struct node *leaving = find_leaving(&s->smap);
        cmd->kind = CMD_NODE_REMOVE;
        cmd->name = leaving != NULL ? leaving->id : NULL;
        return leaving != NULL;
    }
    const struct job *last = last_of_present(s);
    if (last != NULL && last->state == JOB_FINISHED) {
        cmd->kind = CMD_MOVES_DONE;
        cmd->placed = s->smap.placed;
        return true;
    }
    struct job *job;
    if (!is_due(s, last, now) || make(s, now->wall_ms, &job, NULL) != 0)
        return false;
    return standing_create(job, now->wall_ms, cmd);
}

const struct job_kind rebalance_kind = {
    .name = kind,
    .load = JOB_FREE,
    .outlasts_members = true,
    .fence = fence,
    .make = make,
    .fits = fits,
    .next = next,
};
