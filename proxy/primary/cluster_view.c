#include "proxy/primary/cluster_view.h"

#include <string.h>

#include "cluster/props/backend_endpoints.h"
#include "cluster/documents/layout.h"
#include "cluster/placement/protection.h"
#include "common/build.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "net/auth/auth.h"
#include "net/daemon.h"
#include "net/tls/tls.h"
#include "proxy/primary/members.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/recovery.h"
#include "proxy/primary/reseal.h"

enum { AT_RISK_MAX = 20 };

static json_t *capacity_json(const struct keepalive *k)
{
    const struct {
        const char *field;
        uint64_t value;
    } rows[] = {{"total_bytes", k->total_bytes},
                {"available_bytes", k->available_bytes},
                {"mountpaths_high", k->mountpaths_high},
                {"mountpaths_out", k->mountpaths_out},
                {"mountpaths_missing", k->mountpaths_missing},
                {"disks_missing", k->disks_missing},
                {"quarantined", k->quarantined},
                {"lost", k->lost},
                {"uploads_waiting", k->uploads_waiting},
                {"uploads_late", k->uploads_late},
                {"uploads_oldest_ms", k->uploads_oldest_ms},
                {"backends_failing", k->backends_failing}};
    json_t *doc = json_object();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        json_object_set_new(doc, rows[i].field, json_integer((json_int_t)rows[i].value));
    if (k->disks_missing > 0)
        json_object_set_new(doc, "disk_missing", json_string_escaped(k->disk_missing));
    if (k->backends_failing > 0) {
        json_object_set_new(doc, "failing_bucket", json_string_escaped(k->failing_bucket));
        json_object_set_new(doc, "failing_endpoint", json_string_escaped(k->failing_endpoint));
    }
    return doc;
}

/* What the primary would hear of itself. */
static struct keepalive own_keepalive(const struct proxy *p, const struct cluster_state *s)
{
    struct keepalive k = {.version = s->version,
                          .electable = proxy_is_electable(p),
                          .certificate_left_s = tls_left_s(p->tls)};
    snprintf(k.release, sizeof k.release, "%s", build_release());
    snprintf(k.commit, sizeof k.commit, "%s", build_commit());
    return k;
}

/* Nodes report several times within keepalive_timeout: a long one allows for long pauses. */
static uint64_t late_after_ms(const struct proxy_params *params)
{
    uint64_t least = params->keepalive_timeout / 3;
    return params->keepalive_late > least ? params->keepalive_late : least;
}

/* A node that is late is active still: what is silent may be the network for a moment. */
static void add_silence(json_t *doc, struct proxy *p, const struct node *n)
{
    uint64_t silent_ms = members_silent_ms(p, n->id);
    json_object_set_new(doc, "silent_ms", json_integer((json_int_t)silent_ms));
    if (n->state == NODE_ACTIVE && silent_ms > late_after_ms(&p->params))
        json_object_set_new(doc, "late", json_true());
}

static json_t *node_view(struct proxy *p, const struct cluster_state *s, const struct node *n)
{
    struct keepalive last = {0};
    bool is_primary = strcmp(n->id, s->primary) == 0;
    json_t *doc = json_pack("{s:s, s:s, s:s, s:b, s:s, s:s, s:s, s:I, s:I}", "id", n->id, "role",
                            node_role_name(n->role), "state", node_state_name(n->state), "primary",
                            (int)is_primary, "public_url", n->public_url, "control_url",
                            n->control_url, "data_url", n->data_url, "weight",
                            (json_int_t)n->weight, "since_ms", (json_int_t)n->since_ms);
    if (n->lag != LAG_NONE)
        json_object_set_new(doc, "lag", json_string(node_lag_name(n->lag)));
    if (n->absent_since != 0)
        json_object_set_new(doc, "absent", json_true());
    /* One that was the primary does not answer as such any more. */
    if (strcmp(n->id, p->id) == 0 && (!is_primary || proxy_is_primary(p)))
        last = own_keepalive(p, s);
    else if (!members_last(p, n->id, &last))
        return doc; /* only the primary hears from the others */
    else
        add_silence(doc, p, n);
    json_object_set_new(doc, "version", json_integer((json_int_t)last.version));
    json_object_set_new(doc, "release", json_string(last.release));
    json_object_set_new(doc, "commit", json_string(last.commit));
    if (last.certificate_left_s > 0)
        json_object_set_new(doc, "certificate_left_s",
                            json_integer((json_int_t)last.certificate_left_s));
    if (n->role == NODE_TARGET)
        json_object_set_new(doc, "capacity", capacity_json(&last));
    else
        json_object_set_new(doc, "electable", json_boolean(last.electable));
    return doc;
}

static size_t count_running(const struct jobs *jobs)
{
    size_t running = 0;
    for (size_t i = 0; i < jobs->count; i++)
        running += !job_ended(jobs->jobs[i]->state);
    return running;
}

/* Every node is there, and there is one that can hold objects. */
static bool is_healthy(const struct smap *m)
{
    return smap_count(m, NODE_TARGET, NODE_ACTIVE) > 0 &&
           smap_count(m, NODE_TARGET, NODE_UNREACHABLE) == 0 &&
           smap_count(m, NODE_PROXY, NODE_UNREACHABLE) == 0;
}

static json_t *protection_view(const struct cluster_state *s)
{
    json_int_t buckets[PROTECTIONS] = {0};
    json_t *doc = json_object();
    for (size_t i = 0; i < s->bmd.count; i++)
        buckets[protection_of(s, &s->bmd.buckets[i])]++;
    for (enum protection p = 0; p < PROTECTIONS; p++)
        json_object_set_new(doc, protection_name(p), json_integer(buckets[p]));
    return doc;
}

static void add_at_risk(json_t *list, const struct cluster_state *s, enum protection p)
{
    for (size_t i = 0; i < s->bmd.count && json_array_size(list) < AT_RISK_MAX; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        _cleanup_(buf_done)
        struct buf why = BUF_INIT;
        if (protection_of(s, b) != p)
            continue;
        protection_why(s, b, &why);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "bucket", b->name, "protection",
                                              protection_name(p), "why", buf_str(&why)));
    }
}

/* The first of them, the worst before. */
static json_t *at_risk_view(const struct cluster_state *s)
{
    json_t *list = json_array();
    add_at_risk(list, s, PROTECTION_UNAVAILABLE);
    add_at_risk(list, s, PROTECTION_DEGRADED);
    return list;
}

/* Buckets that are refused credentials: of an older release, or of another list. */
static json_t *without_credentials_view(const struct proxy *p, const struct cluster_state *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->bmd.count && json_array_size(list) < AT_RISK_MAX; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        struct error why = ERROR_INIT;
        if (b->props.backend != NULL &&
            backend_endpoints_check_url(p->endpoints, b->props.backend, &why) != 0)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s}", "bucket", b->name, "why", why.message));
    }
    return list;
}

/* Buckets that have used most of their quota, or all. */
static json_t *quotas_view(struct proxy *p, const struct cluster_state *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->bmd.count && json_array_size(list) < AT_RISK_MAX; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        _cleanup_(buf_done)
        struct buf text = BUF_INIT;
        if (!bucket_props_have_quota(&b->props))
            continue;
        const struct quota_amount used = members_quota_used(p, b->id);
        enum quota_use use = quota_use(&b->props, used);
        quota_put_use(&b->props, used, &text);
        if (use != QUOTA_FREE)
            json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "bucket", b->name, "use",
                                                  quota_use_name(use), "text", buf_str(&text)));
    }
    return list;
}

/* On loopback only the programs of this machine are everybody. */
static bool is_open_to_all(const struct proxy_params *params, enum exposure exposure)
{
    return exposure == EXPOSURE_ANONYMOUS &&
           !auth_is_loopback(daemon_address(params->public_address, params->address));
}

json_t *cluster_view(struct proxy *p, const struct cluster_state *s, bool primary_answers)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < s->smap.count; i++)
        json_array_append_new(nodes, node_view(p, s, &s->smap.nodes[i]));
    json_t *doc = json_pack(
        "{s:s, s:I, s:I, s:s, s:b, s:o, s:I, s:I, s:I, s:o, s:o, s:o}", "cluster", s->cluster_id,
        "term", (json_int_t)s->term, "version", (json_int_t)s->version, "primary", s->primary,
        "healthy", (int)(primary_answers && is_healthy(&s->smap)), "nodes", nodes, "buckets",
        (json_int_t)s->bmd.count, "jobs_running", (json_int_t)count_running(&s->jobs), "refused",
        (json_int_t)recovery_refused(p), "protection", protection_view(s), "at_risk",
        at_risk_view(s), "without_credentials", without_credentials_view(p, s));
    json_object_set_new(doc, "public_auth", json_boolean(p->exposure == EXPOSURE_AUTH));
    if (is_open_to_all(&p->params, p->exposure))
        json_object_set_new(doc, "open_to_all", json_true());
    json_object_set_new(doc, "quotas", quotas_view(p, s));
    json_object_set_new(doc, "sealed_by_old_key", json_integer(reseal_left(p, s)));
    json_object_set_new(doc, "moving", json_boolean(!layout_is_settled(&s->smap)));
    return doc;
}
