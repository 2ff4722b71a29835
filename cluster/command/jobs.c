/* Commands on jobs. */
#include "cluster/command/command.h"
#include "cluster/command/parts.h"

#include <string.h>

#include "cluster/placement/lag.h"
#include "cluster/documents/settings.h"
#include "common/mem.h"

static const struct job *oldest_ended(const struct jobs *j)
{
    for (size_t i = 0; i < j->count; i++) {
        if (job_ended(j->jobs[i]->state))
            return j->jobs[i];
    }
    return NULL;
}

/* Room for one more job: the document without the oldest ended one where it is full. */
static int jobs_make_room(const struct cluster_state *s, struct jobs *out, struct error *err)
{
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    *out = s->jobs;
    document_ref(out->memory);
    while (out->count >= settings.jobs_max) {
        const struct job *ended = oldest_ended(out);
        struct jobs fewer;
        if (ended == NULL) {
            document_unref(out->memory);
            return error_set(err, E_OVERLOAD, "%zu jobs are unfinished, as many as jobs_max allows",
                             out->count);
        }
        jobs_without(out, ended->id, &fewer);
        document_unref(out->memory);
        *out = fewer;
    }
    return 0;
}

int command_job_create(const struct cluster_state *s, const struct command *cmd,
                       const struct cluster_state **next, struct error *err)
{
    const struct job *known = jobs_find(&s->jobs, cmd->job->id);
    if (known != NULL && job_equal(known, cmd->job))
        return command_keep(s, next);
    if (known != NULL)
        return error_set(err, E_EXISTS, "job '%s' exists", cmd->job->id);
    if (cmd->job->state != JOB_QUEUED)
        return error_set(err, E_JOB_STATE, "job '%s' must begin as queued, not as %s", cmd->job->id,
                         job_state_name(cmd->job->state));
    struct jobs roomy;
    int r = jobs_make_room(s, &roomy, err);
    if (r != 0)
        return r;
    struct jobs j;
    jobs_with(&roomy, cmd->job, &j);
    document_unref(roomy.memory);
    j.version = s->jobs.version + 1;
    *next = command_next_jobs(s, &j);
    return 0;
}

static int need_job(const struct cluster_state *s, const char *id, const struct job **out,
                    struct error *err)
{
    *out = jobs_find(&s->jobs, id);
    if (*out != NULL)
        return 0;
    return error_set(err, E_JOB_NOT_FOUND, "no job has the id '%.64s'", id);
}

/* Whom the job went on without it goes on without. */
static bool goes_on_without(const struct job *from, const struct job *to)
{
    bool same = from->without_count <= to->without_count;
    for (size_t i = 0; same && i < from->without_count; i++)
        same = strcmp(from->without[i], to->without[i]) == 0;
    return same;
}

static int check_job_without(const struct job *from, const struct job *to, struct error *err)
{
    bool may_shed = from->state == JOB_QUEUED && to->state == JOB_QUEUED;
    bool sheds = from->without_count != to->without_count;
    if (goes_on_without(from, to) && (may_shed || !sheds))
        return 0;
    return error_set(err, E_JOB_STATE, "job '%s', %s, goes on without %zu targets, not %zu",
                     from->id, job_state_name(from->state), from->without_count, to->without_count);
}

/* Who ends a job before the decision may not have seen its last move: what ends is the job as it
 * stands.  The first reason does. */
static bool ends_early(const struct job *from, const struct job *to)
{
    return to->state == JOB_STOPPING && from->state != JOB_STOPPING;
}

static struct job *ended_early(const struct job *known, const struct job *to)
{
    struct job *j = job_copy(known);
    j->state = to->state;
    j->stop_as = to->stop_as;
    free(j->error_code);
    free(j->error_message);
    j->error_code = xstrdup(to->error_code);
    j->error_message = xstrdup(to->error_message);
    return j;
}

static bool same_reason(const struct job *a, const struct job *b)
{
    return a->stop_as == b->stop_as && strcmp(a->error_code != NULL ? a->error_code : "",
                                              b->error_code != NULL ? b->error_code : "") == 0;
}

static int check_job_move(const struct job *from, const struct job *to, struct error *err)
{
    if (strcmp(from->kind, to->kind) != 0)
        return error_set(err, E_JOB_STATE, "job '%s' is of kind %s, not %s", from->id, from->kind,
                         to->kind);
    bool as_decided =
        from->state != JOB_STOPPING || to->state == JOB_STOPPING || to->state == from->stop_as;
    if (from->state != to->state && (!job_may_move(from->state, to->state) || !as_decided))
        return error_set(err, E_JOB_STATE, "job '%s' cannot go from %s to %s", from->id,
                         job_state_name(from->state), job_state_name(to->state));
    if (from->state == JOB_STOPPING && to->state == JOB_STOPPING && !same_reason(from, to))
        return error_set(err, E_JOB_STATE, "job '%s' is stopping already", from->id);
    int r = to->state != JOB_STOPPING ? check_job_without(from, to, err) : 0;
    if (r != 0)
        return r;
    bool sheds = from->without_count != to->without_count;
    bool again = to->state == JOB_QUEUED && (from->state == JOB_RUNNING || sheds);
    if (to->state != JOB_STOPPING && to->attempt != from->attempt + again)
        return error_set(err, E_JOB_STATE, "job '%s' cannot go from attempt %llu to %llu", from->id,
                         (unsigned long long)from->attempt, (unsigned long long)to->attempt);
    if (to->state == JOB_STOPPING && to->stop_as != JOB_FAILED && to->stop_as != JOB_ABORTED)
        return error_set(err, E_JOB_STATE, "job '%s' cannot stop as %s", from->id,
                         job_state_name(to->stop_as));
    return 0;
}

/* Whom the job went on without has nothing of what becomes visible now: should it be back, it is an
 * owner that has missed writes, and a repair at hand may have been through before them. */
static void note_missed_outputs(struct cluster_state *next, const struct job *job)
{
    const uint64_t version = next->smap.version + 1;
    if (json_is_true(json_object_get(job->spec, "dry_run")))
        return;
    for (size_t i = 0; i < job->without_count; i++) {
        const struct node *known = smap_node(&next->smap, job->without[i]);
        if (known == NULL)
            continue;
        struct node n = *known;
        struct smap m;
        lag_of_missing(&n, next->version);
        smap_with(&next->smap, &n, &m);
        m.lagged = next->version;
        m.version = version;
        document_unref(next->smap.memory);
        next->smap = m;
    }
}

int command_job_update(const struct cluster_state *s, const struct command *cmd,
                       const struct cluster_state **next, struct error *err)
{
    const struct job *known;
    int r;
    if ((r = need_job(s, cmd->job->id, &known, err)) != 0 ||
        (r = check_job_move(known, cmd->job, err)) != 0)
        return r;
    bool stops_already = known->state == JOB_STOPPING && cmd->job->state == JOB_STOPPING;
    if (stops_already || job_equal(known, cmd->job))
        return command_keep(s, next);
    struct job *job =
        ends_early(known, cmd->job) ? ended_early(known, cmd->job) : job_ref(cmd->job);
    struct jobs j;
    jobs_with(&s->jobs, job, &j);
    job_unref(job);
    struct cluster_state *made = command_next_jobs(s, &j);
    if (cmd->job->state == JOB_COMMITTING && known->state != JOB_COMMITTING)
        note_missed_outputs(made, cmd->job);
    *next = made;
    return 0;
}

int command_job_forget(const struct cluster_state *s, const struct command *cmd,
                       const struct cluster_state **next, struct error *err)
{
    const struct job *known;
    int r = need_job(s, cmd->name, &known, err);
    if (r != 0)
        return r;
    if (!job_ended(known->state))
        return error_set(err, E_JOB_STATE, "job '%s' is %s; only an ended job can be forgotten",
                         known->id, job_state_name(known->state));
    struct jobs j;
    jobs_without(&s->jobs, cmd->name, &j);
    *next = command_next_jobs(s, &j);
    return 0;
}
