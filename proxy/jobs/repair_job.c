#include "proxy/jobs/repair_job.h"

#include <string.h>

#include "cluster/lag.h"
#include "cluster/layout.h"
#include "cluster/settings.h"
#include "common/buf.h"
#include "common/mem.h"
#include "common/rng.h"

bool repair_job_is(const struct job *job)
{
    return strcmp(job->kind, "repair") == 0;
}

/* --- the fence -------------------------------------------------------------------------------- */

struct repair_fence repair_fence(const struct cluster_state *s)
{
    struct repair_fence f = {.lagged = s->smap.lagged, .placed = s->smap.placed};
    for (size_t i = 0; i < s->bmd.count; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        if (b->filled < b->props.copies && b->raised > f.raised)
            f.raised = b->raised;
    }
    return f;
}

bool repair_fence_equal(const struct repair_fence *a, const struct repair_fence *b)
{
    return a->lagged == b->lagged && a->placed == b->placed && a->raised == b->raised;
}

static uint64_t number_of(const struct job *job, const char *field)
{
    return (uint64_t)json_integer_value(json_object_get(job->spec, field));
}

static struct repair_fence fence_of(const struct job *job)
{
    return (struct repair_fence){.lagged = number_of(job, "lagged"),
                                 .placed = number_of(job, "placed"),
                                 .raised = number_of(job, "raised")};
}

/* --- jobs ------------------------------------------------------------------------------------- */

static const struct job *unfinished(const struct cluster_state *s)
{
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        if (repair_job_is(job) && !job_ended(job->state))
            return job;
    }
    return NULL;
}

/* The last one that was made for the present fence. */
static const struct job *last_of_present(const struct cluster_state *s)
{
    const struct repair_fence now = repair_fence(s);
    const struct job *last = NULL;
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        if (!repair_job_is(job))
            continue;
        const struct repair_fence f = fence_of(job);
        if (repair_fence_equal(&f, &now))
            last = job;
    }
    return last;
}

/* Those that answer; whom it goes without its description says. */
static void add_targets(const struct cluster_state *s, struct job *job)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_printf(&text, "by map %llu", (unsigned long long)s->smap.version);
    job->participants = xcalloc(s->smap.count, sizeof *job->participants);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role != NODE_TARGET)
            continue;
        if (n->state == NODE_ACTIVE && node_is_present(n))
            job->participants[job->participant_count++] = xstrdup(n->id);
        else if (n->state == NODE_UNREACHABLE)
            buf_printf(&text, "; without '%s', which does not answer and is awaited", n->id);
        else if (n->state == NODE_ACTIVE)
            buf_printf(&text, "; without '%s', which lacks mountpaths", n->id);
    }
    job->description = buf_steal(&text);
}

static int check_makes(const struct cluster_state *s, struct error *err)
{
    const struct job *job = unfinished(s);
    if (job != NULL)
        return error_set(err, E_JOB_STATE, "job '%s' is a repair that has not ended", job->id);
    if (!bmd_has_copies(&s->bmd))
        return error_set(err, E_INVALID, "no bucket keeps more than one copy");
    if (!layout_is_settled(&s->smap))
        return error_set(err, E_JOB_STATE,
                         "objects are being moved to new owners; a repair comes after that");
    if (smap_count(&s->smap, NODE_TARGET, NODE_ACTIVE) == 0)
        return error_set(err, E_NO_TARGETS, "the cluster has no active target");
    return 0;
}

int repair_job_make(const struct cluster_state *s, int64_t wall_ms, struct job **out,
                    struct error *err)
{
    char id[4 + 11];
    int code = check_makes(s, err);
    if (code != 0)
        return code;
    const struct repair_fence f = repair_fence(s);
    random_id("rpr-", id);
    struct job *job = job_new(id, "repair");
    job->state = JOB_QUEUED;
    job->created_ms = wall_ms;
    job->spec = json_pack("{s:I, s:I, s:I}", "lagged", (json_int_t)f.lagged, "placed",
                          (json_int_t)f.placed, "raised", (json_int_t)f.raised);
    job->plan = json_object();
    add_targets(s, job);
    *out = job;
    return 0;
}

int repair_job_fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    if (number_of(job, "lagged") == s->smap.lagged && number_of(job, "placed") == s->smap.placed)
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
    const struct repair_fence f = repair_fence(s);
    cmd->lagged = f.lagged;
    cmd->placed = f.placed;
    cmd->raised = f.raised;
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

/* Not after one for this fence was aborted by hand; after a failed one when some time has passed.
 */
static bool is_wanted(const struct cluster_state *s, const struct job *last, uint64_t stood_ms,
                      int64_t wall_ms)
{
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    if (!settings.repair || stood_ms < settings.repair_delay || !is_needed(s))
        return false;
    if (last == NULL || last->state != JOB_FAILED)
        return last == NULL;
    /* One that ended later than now did so by the clock of another primary. */
    int64_t age_ms = wall_ms - last->ended_ms;
    return age_ms < 0 || age_ms >= REPAIR_RETRY_MS;
}

bool repair_next(const struct cluster_state *s, uint64_t stood_ms, int64_t wall_ms,
                 struct command *cmd)
{
    *cmd = (struct command){.wall_ms = wall_ms};
    const struct job *last = last_of_present(s);
    if (!bmd_has_copies(&s->bmd) || (last != NULL && last->state == JOB_FINISHED))
        return close_next(s, cmd);
    struct job *job;
    if (!is_wanted(s, last, stood_ms, wall_ms) || repair_job_make(s, wall_ms, &job, NULL) != 0)
        return false;
    *cmd =
        (struct command){.kind = CMD_JOB_CREATE, .name = job->id, .job = job, .wall_ms = wall_ms};
    return true;
}
