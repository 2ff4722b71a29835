#include "target/node/readiness.h"

#include <string.h>

#include "cluster/documents/job.h"
#include "cluster/documents/settings.h"
#include "cluster/placement/lag.h"

bool readiness_is_refusal(int code)
{
    static const int refusals[] = {E_MOUNTPATH, E_EXISTS, E_WRONG_CLUSTER, E_UNAUTHORIZED,
                                   E_NODE_STATE};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (code == refusals[i])
            return true;
    }
    return false;
}

static uint64_t number(const struct job *job, const char *field)
{
    return (uint64_t)json_integer_value(json_object_get(job->spec, field));
}

/* Of what is to be repaired now: another one follows a repair of an earlier map by itself. */
static bool is_of_present(const struct job *job, const struct cluster_state *s)
{
    return strcmp(job->kind, "repair") == 0 && number(job, "lagged") == s->smap.lagged &&
           number(job, "placed") == s->smap.placed && number(job, "raised") == lag_raised(&s->bmd);
}

static const struct job *last_repair(const struct cluster_state *s)
{
    const struct job *last = NULL;
    for (size_t i = 0; i < s->jobs.count; i++) {
        if (is_of_present(s->jobs.jobs[i], s))
            last = s->jobs.jobs[i];
    }
    return last;
}

static bool lacks_room(const struct job *repair)
{
    return repair != NULL && repair->error_code != NULL &&
           strcmp(repair->error_code, error_name(E_NO_SPACE)) == 0;
}

/* What keeps the repair from ending by itself; NULL: nothing that is known. */
static const char *what_holds_repair(const struct readiness_question *q)
{
    struct cluster_settings settings;
    const struct job *repair = last_repair(q->state);
    cluster_settings_get(&q->state->config, &settings);
    if (!settings.repair)
        return "'repair' is off: 'dfcctl job start repair'";
    if (q->is_full || lacks_room(repair))
        return "the repair waits for room on a disk: 'dfcctl storage mountpath ls'";
    if (repair != NULL && repair->state == JOB_ABORTED)
        return "the repair was aborted: 'dfcctl job start repair'";
    return NULL;
}

static void judge_synced(const struct readiness_question *q, const struct node *n,
                         struct readiness *out)
{
    struct error *why = &out->why;
    const char *held = NULL;
    out->ready = false;
    if (n->state == NODE_MAINTENANCE || n->state == NODE_DECOMMISSIONING)
        out->ready = true;
    else if (n->state != NODE_ACTIVE || strcmp(n->boot, q->boot) != 0)
        error_set(why, E_NOT_READY, "the primary has not let in this run of target '%s' yet",
                  q->self);
    else if (n->absent_since != 0)
        error_set(why, E_NOT_READY,
                  "target '%s' lacks a disk: enable it, or give it up ('dfcctl storage mountpath "
                  "ls' names it)",
                  q->self);
    else if (n->lag == LAG_NONE)
        out->ready = true;
    else if ((held = what_holds_repair(q)) != NULL)
        error_set(why, E_NOT_READY, "target '%s' lacks writes that it missed, and %s", q->self,
                  held);
    else
        error_set(why, E_NOT_READY, "a repair brings target '%s' the writes that it missed",
                  q->self);
    out->ready = out->ready || held != NULL;
}

void readiness(const struct readiness_question *q, struct readiness *out)
{
    const struct node *n = smap_node(&q->state->smap, q->self);
    struct error *why = &out->why;
    *out = (struct readiness){.why = ERROR_INIT};
    if (q->stops)
        error_set(why, E_NOT_READY, "target '%s' is stopping", q->self);
    else if (q->refused != NULL)
        error_set(why, E_NOT_READY, "the primary refuses target '%s': %s", q->self, q->refused);
    else if (!q->serves)
        error_set(why, E_NOT_READY, "target '%s' is starting", q->self);
    else if (n == NULL)
        error_set(why, E_NOT_READY, "target '%s' is not in the cluster map", q->self);
    else if (q->synced)
        judge_synced(q, n, out);
    else
        out->ready = true;
}
