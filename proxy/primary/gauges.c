#include "proxy/primary/gauges.h"

#include "cluster/placement/protection.h"
#include "common/clock.h"
#include "common/cluster_health.h"
#include "common/jsonx.h"
#include "common/metrics.h"
#include "proxy/primary/cluster_view.h"
#include "proxy/primary/members.h"
#include "proxy/primary/proxy.h"
#include "proxy/jobs/job_stall.h"
#include "proxy/jobs/scrub_job.h"
#include "proxy/primary/job_glue.h"

static void count_nodes(const struct smap *m)
{
    static const enum node_role roles[] = {NODE_PROXY, NODE_TARGET};
    static const enum node_state states[] = {NODE_ACTIVE, NODE_UNREACHABLE, NODE_MAINTENANCE,
                                             NODE_DECOMMISSIONING};
    for (size_t r = 0; r < 2; r++) {
        for (size_t s = 0; s < sizeof states / sizeof states[0]; s++) {
            char labels[64];
            snprintf(labels, sizeof labels, "role=\"%s\",state=\"%s\"", node_role_name(roles[r]),
                     node_state_name(states[s]));
            metric_set(metric_get(M_cluster_nodes, labels),
                       (int64_t)smap_count(m, roles[r], states[s]));
        }
    }
}

static void count_buckets(const struct cluster_state *s)
{
    int64_t count[PROTECTIONS] = {0};
    for (size_t i = 0; i < s->bmd.count; i++)
        count[protection_of(s, &s->bmd.buckets[i])]++;
    for (enum protection p = 0; p < PROTECTIONS; p++) {
        char labels[64];
        snprintf(labels, sizeof labels, "protection=\"%s\"", protection_name(p));
        metric_set(metric_get(M_cluster_buckets, labels), count[p]);
    }
}

/* By how much of their quota they have used; elsewhere than at the primary all are 0. */
static void count_quotas(struct proxy *p, const struct cluster_state *s, bool primary)
{
    int64_t count[QUOTA_USES] = {0};
    for (size_t i = 0; i < s->bmd.count && primary; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        if (bucket_props_have_quota(&b->props))
            count[quota_use(&b->props, members_quota_used(p, b->id))]++;
    }
    for (enum quota_use use = 0; use < QUOTA_USES; use++) {
        char labels[32];
        snprintf(labels, sizeof labels, "use=\"%s\"", quota_use_name(use));
        metric_set(metric_get(M_cluster_quotas, labels), count[use]);
    }
}

static void show_bucket(struct proxy *p, const struct bucket *b)
{
    const struct quota_amount used = members_quota_used(p, b->id);
    char labels[96];
    snprintf(labels, sizeof labels, "bucket=\"%s\"", b->name);
    metric_set(metric_get(M_bucket_objects, labels), (int64_t)used.objects);
    metric_set(metric_get(M_bucket_bytes, labels), (int64_t)used.bytes);
}

/* Targets report what they have of buckets with a quota alone.  One that is gone must not stay. */
static void show_buckets(struct proxy *p, const struct cluster_state *s, bool primary)
{
    uint64_t version = primary ? s->bmd.version : 0;
    uint64_t left = p->params.bucket_metrics_max;
    pthread_mutex_lock(&p->verdict_lock);
    if (p->shown_buckets != version) {
        metric_forget(M_bucket_objects);
        metric_forget(M_bucket_bytes);
        p->shown_buckets = version;
    }
    for (size_t i = 0; i < s->bmd.count && primary && left > 0; i++) {
        if (!bucket_props_have_quota(&s->bmd.buckets[i].props))
            continue;
        show_bucket(p, &s->bmd.buckets[i]);
        left--;
    }
    pthread_mutex_unlock(&p->verdict_lock);
}

static void count_lagging(const struct smap *m)
{
    int64_t count = 0;
    for (size_t i = 0; i < m->count; i++)
        count += m->nodes[i].state == NODE_ACTIVE && m->nodes[i].lag != LAG_NONE;
    metric_set(metric_get(M_cluster_lagging_targets, NULL), count);
}

void gauges_of_state(const struct cluster_state *s)
{
    metric_set(metric_get(M_cluster_state_version, NULL), (int64_t)s->version);
    count_nodes(&s->smap);
    count_buckets(s);
    count_lagging(&s->smap);
}

static const char *colour(struct proxy *p, const struct cluster_state *s)
{
    pthread_mutex_lock(&p->verdict_lock); /* who comes meanwhile waits for the same judgement */
    if (!health_verdict_holds(&p->verdict, s->term, s->version, clock_ms())) {
        _cleanup_json_ json_t *overview = cluster_view(p, s, true);
        p->verdict = (struct health_verdict){.colour = cluster_health_colour(overview),
                                             .term = s->term,
                                             .version = s->version,
                                             .judged_ms = clock_ms()};
    }
    const char *now = p->verdict.colour;
    pthread_mutex_unlock(&p->verdict_lock);
    return now;
}

/* The colour that dfcctl shows, 1; the primary alone can judge, so that elsewhere all are 0. */
static void show_health(struct proxy *p, const struct cluster_state *s, bool primary)
{
    const char *now = primary ? colour(p, s) : "";
    for (size_t i = 0; cluster_health_colours[i] != NULL; i++) {
        char labels[32];
        snprintf(labels, sizeof labels, "colour=\"%s\"", cluster_health_colours[i]);
        metric_set(metric_get(M_cluster_health, labels),
                   strcmp(now, cluster_health_colours[i]) == 0);
    }
}

static json_t *reports(void *ctx, const char *job_id)
{
    return job_glue_reports(ctx, job_id);
}

static void show_stalls(struct proxy *p, const struct cluster_state *s, bool primary)
{
    pthread_mutex_lock(&p->verdict_lock);
    job_stalls_look(p->stalls, primary ? &s->jobs : NULL, reports, p, clock_ms());
    pthread_mutex_unlock(&p->verdict_lock);
}

void gauges_update(struct proxy *p)
{
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    bool primary = proxy_is_primary(p);
    int64_t age_ms = primary ? scrub_age_ms(s, clock_wall_ms()) : 0;
    metric_set(metric_get(M_cluster_primary, NULL), primary);
    show_health(p, s, primary);
    count_quotas(p, s, primary);
    show_buckets(p, s, primary);
    show_stalls(p, s, primary);
    metric_set(metric_get(M_scrub_age_seconds, NULL), age_ms / 1000);
}
