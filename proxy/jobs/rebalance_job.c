#include "proxy/jobs/rebalance_job.h"

#include <string.h>

#include "cluster/layout.h"
#include "cluster/settings.h"
#include "common/mem.h"
#include "common/rng.h"

bool rebalance_job_is(const struct job *job)
{
    return strcmp(job->kind, "rebalance") == 0;
}

static uint64_t placed_of(const struct job *job)
{
    return (uint64_t)json_integer_value(json_object_get(job->spec, "placed"));
}

static const struct job *unfinished(const struct cluster_state *s)
{
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        if (rebalance_job_is(job) && !job_ended(job->state))
            return job;
    }
    return NULL;
}

/* The last one that was made for the present owners. */
static const struct job *last_of_present(const struct cluster_state *s)
{
    const struct job *last = NULL;
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        if (rebalance_job_is(job) && placed_of(job) == s->smap.placed)
            last = job;
    }
    return last;
}

/* Also those in maintenance: they have what is to be moved. */
static void add_targets(const struct cluster_state *s, struct job *job)
{
    job->participants = xcalloc(s->smap.count, sizeof *job->participants);
    for (size_t i = 0; i < s->smap.count; i++) {
        if (s->smap.nodes[i].role == NODE_TARGET)
            job->participants[job->participant_count++] = xstrdup(s->smap.nodes[i].id);
    }
}

static int check_makes(const struct cluster_state *s, struct error *err)
{
    const struct job *job = unfinished(s);
    if (job != NULL)
        return error_set(err, E_JOB_STATE, "job '%s' is a rebalance that has not ended", job->id);
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

int rebalance_job_make(const struct cluster_state *s, int64_t wall_ms, struct job **out,
                       struct error *err)
{
    char id[4 + 11];
    int code = check_makes(s, err);
    if (code != 0)
        return code;
    random_id("rbl-", id);
    struct job *job = job_new(id, "rebalance");
    job->state = JOB_QUEUED;
    job->description = xprintf("to the owners of map %llu", (unsigned long long)s->smap.placed);
    job->created_ms = wall_ms;
    job->spec = json_pack("{s:I}", "placed", (json_int_t)s->smap.placed);
    job->plan = json_object();
    add_targets(s, job);
    *out = job;
    return 0;
}

int rebalance_job_fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    for (size_t i = 0; i < job->participant_count; i++) {
        if (smap_node(&s->smap, job->participants[i]) == NULL)
            return error_set(err, E_STALE_MAP,
                             "target '%s' is gone; a rebalance without it follows",
                             job->participants[i]);
    }
    if (placed_of(job) == s->smap.placed)
        return 0;
    return error_set(err, E_ABORTED,
                     "the owners have changed; a rebalance to those of map %llu follows",
                     (unsigned long long)s->smap.placed);
}

/* Not after one for these owners was aborted by hand; after a failed one when some time has passed.
 */
static bool is_wanted(const struct cluster_state *s, const struct job *last, uint64_t stood_ms,
                      int64_t wall_ms)
{
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    if (!settings.rebalance || stood_ms < settings.rebalance_delay)
        return false;
    if (last == NULL || last->state != JOB_FAILED)
        return last == NULL;
    /* One that ended later than now did so by the clock of another primary. */
    int64_t age_ms = wall_ms - last->ended_ms;
    return age_ms < 0 || age_ms >= REBALANCE_RETRY_MS;
}

static const struct node *find_leaving(const struct smap *m)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->nodes[i].state == NODE_DECOMMISSIONING)
            return &m->nodes[i];
    }
    return NULL;
}

bool rebalance_next(const struct cluster_state *s, uint64_t stood_ms, int64_t wall_ms,
                    struct command *cmd)
{
    *cmd = (struct command){.wall_ms = wall_ms};
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
    if (!is_wanted(s, last, stood_ms, wall_ms) || rebalance_job_make(s, wall_ms, &job, NULL) != 0)
        return false;
    cmd->kind = CMD_JOB_CREATE;
    cmd->name = job->id;
    cmd->job = job;
    return true;
}
