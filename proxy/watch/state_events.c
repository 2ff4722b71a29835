#include "proxy/watch/state_events.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cluster/documents/state.h"
#include "proxy/watch/event_log.h"

struct told {
    const struct cluster_state *before, *now;
    int64_t wall_ms;
    struct event_log *log;
};

static void word(char *out, const char *text)
{
    snprintf(out, EVENT_WORD_MAX, "%s", text);
}

static struct event event_of(const struct told *t, enum event_kind kind)
{
    return (struct event){.kind = kind, .at_ms = t->wall_ms};
}

__attribute__((format(printf, 3, 4))) static void tell(const struct told *t, struct event *e,
                                                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    event_log_add(t->log, e);
}

/* --- nodes ----------------------------------------------------------------------------------- */

static void node_event(const struct told *t, const struct node *n, enum event_kind kind,
                       const char *what)
{
    struct event e = event_of(t, kind);
    word(e.node, n->id);
    tell(t, &e, "%s '%s' %s", node_role_name(n->role), n->id, what);
}

static void node_state(const struct told *t, const struct node *n)
{
    static const struct {
        enum event_kind kind;
        const char *what;
    } rows[] = {
        [NODE_ACTIVE] = {EVENT_node_active, "is active again"},
        [NODE_UNREACHABLE] = {EVENT_node_unreachable, "is unreachable"},
        [NODE_MAINTENANCE] = {EVENT_node_maintenance, "is in maintenance"},
        [NODE_DECOMMISSIONING] = {EVENT_node_decommissioning, "is leaving the cluster"},
    };
    node_event(t, n, rows[n->state].kind, rows[n->state].what);
}

static void node_changed(const struct told *t, const struct node *a, const struct node *b)
{
    if (strcmp(a->boot, b->boot) != 0)
        node_event(t, b, EVENT_node_restarted, "was started anew");
    if (a->state != b->state)
        node_state(t, b);
    if (a->lag == LAG_NONE && b->lag != LAG_NONE)
        node_event(t, b, EVENT_node_behind, "may lack writes: a repair is due");
    if (a->lag != LAG_NONE && b->lag == LAG_NONE && b->state == NODE_ACTIVE)
        node_event(t, b, EVENT_node_repaired, "has what it missed");
    if (a->absent_since == 0 && b->absent_since != 0)
        node_event(t, b, EVENT_node_passed_over, "has replicas that do not count");
    if (a->absent_since != 0 && b->absent_since == 0)
        node_event(t, b, EVENT_node_counts, "has replicas that count again");
}

static void nodes(const struct told *t)
{
    for (size_t i = 0; i < t->before->smap.count; i++) {
        const struct node *a = &t->before->smap.nodes[i];
        if (smap_node(&t->now->smap, a->id) == NULL)
            node_event(t, a, EVENT_node_left, "left the cluster");
    }
    for (size_t i = 0; i < t->now->smap.count; i++) {
        const struct node *b = &t->now->smap.nodes[i];
        const struct node *a = smap_node(&t->before->smap, b->id);
        if (a == NULL)
            node_event(t, b, EVENT_node_joined, "joined the cluster");
        else
            node_changed(t, a, b);
    }
}

/* --- buckets --------------------------------------------------------------------------------- */

static struct event bucket_event(const struct told *t, enum event_kind kind, const char *name)
{
    struct event e = event_of(t, kind);
    word(e.bucket, name);
    return e;
}

static void bucket_gone(const struct told *t, const struct bucket *a)
{
    struct event e = bucket_event(t, EVENT_bucket_destroyed, a->name);
    if (bmd_bucket_by_id(&t->now->bmd, a->id) == NULL)
        tell(t, &e, "bucket '%s' was destroyed", a->name);
}

static void bucket_new(const struct told *t, const struct bucket *b)
{
    const struct bucket *a = bmd_bucket_by_id(&t->before->bmd, b->id);
    struct event e =
        bucket_event(t, a != NULL ? EVENT_bucket_renamed : EVENT_bucket_created, b->name);
    if (a != NULL)
        tell(t, &e, "bucket '%s' has the new name '%s'", a->name, b->name);
    else
        tell(t, &e, "bucket '%s' was created", b->name);
}

/* Those of one name. */
static void bucket_same(const struct told *t, const struct bucket *a, const struct bucket *b)
{
    if (a->id != b->id) {
        bucket_gone(t, a);
        bucket_new(t, b);
    } else if (!bucket_props_equal(&a->props, &b->props) ||
               !bucket_texts_equal(&a->texts, &b->texts)) {
        struct event e = bucket_event(t, EVENT_bucket_changed, b->name);
        tell(t, &e, "properties of bucket '%s' were changed", b->name);
    }
}

/* Both are sorted by name. */
static void buckets(const struct told *t)
{
    const struct bmd *a = &t->before->bmd, *b = &t->now->bmd;
    size_t i = 0, k = 0;
    while (i < a->count || k < b->count) {
        int order = i == a->count   ? 1
                    : k == b->count ? -1
                                    : strcmp(a->buckets[i].name, b->buckets[k].name);
        if (order == 0)
            bucket_same(t, &a->buckets[i++], &b->buckets[k++]);
        else if (order < 0)
            bucket_gone(t, &a->buckets[i++]);
        else
            bucket_new(t, &b->buckets[k++]);
    }
}

/* --- jobs ------------------------------------------------------------------------------------ */

static void job_event(const struct told *t, const struct job *j, enum event_kind kind,
                      const char *what)
{
    const char *why = j->state == JOB_FAILED && j->error_code != NULL ? j->error_code : "";
    struct event e = event_of(t, kind);
    word(e.job, j->id);
    tell(t, &e, "job '%s' (%s) %s%s%s", j->id, j->kind, what, why[0] != '\0' ? ": " : "", why);
}

static void job_changed(const struct told *t, const struct job *a, const struct job *b)
{
    if (a != NULL && a->state == b->state)
        return;
    if (b->state == JOB_FINISHED)
        job_event(t, b, EVENT_job_finished, "finished");
    else if (b->state == JOB_FAILED)
        job_event(t, b, EVENT_job_failed, "failed");
    else if (b->state == JOB_ABORTED)
        job_event(t, b, EVENT_job_aborted, "was aborted");
    else if (a == NULL)
        job_event(t, b, EVENT_job_created, "was created");
}

/* A job that is known keeps its place, and a new one is at the end. */
static void jobs(const struct told *t)
{
    const struct jobs *a = &t->before->jobs, *b = &t->now->jobs;
    size_t at = 0;
    for (size_t i = 0; i < b->count; i++) {
        while (at < a->count && strcmp(a->jobs[at]->id, b->jobs[i]->id) != 0)
            at++; /* it was forgotten */
        const struct job *known = at < a->count ? a->jobs[at] : NULL;
        if (known != b->jobs[i])
            job_changed(t, known, b->jobs[i]);
    }
}

/* --- the whole ------------------------------------------------------------------------------- */

static void primary(const struct told *t)
{
    struct event e = event_of(t, EVENT_primary);
    if (t->before->term == t->now->term)
        return;
    word(e.node, t->now->primary);
    tell(t, &e, "proxy '%s' began as the primary", t->now->primary);
}

void state_events(const struct cluster_state *before, const struct cluster_state *now,
                  int64_t wall_ms, struct event_log *log)
{
    const struct told t = {.before = before, .now = now, .wall_ms = wall_ms, .log = log};
    primary(&t);
    if (before->smap.version != now->smap.version)
        nodes(&t);
    if (before->bmd.version != now->bmd.version)
        buckets(&t);
    if (before->config.version != now->config.version) {
        struct event e = event_of(&t, EVENT_settings_changed);
        tell(&t, &e, "settings of the cluster were changed");
    }
    if (before->access.version != now->access.version) {
        struct event e = event_of(&t, EVENT_access_changed);
        tell(&t, &e, "users, roles or grants were changed");
    }
    if (before->jobs.version != now->jobs.version)
        jobs(&t);
}
