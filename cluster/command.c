#include "cluster/command.h"

#include <string.h>

#include "cluster/backend.h"
#include "cluster/document.h"
#include "cluster/lag.h"
#include "cluster/layout.h"
#include "cluster/parts.h"
#include "cluster/settings.h"
#include "common/mem.h"

/* Every command of the table below either refuses, keeps the snapshot, or builds the next one out
 * of it and one new sub-document. */
typedef int apply_fn(const struct cluster_state *s, const struct command *cmd,
                     const struct cluster_state **next, struct error *err);

static int keep(const struct cluster_state *s, const struct cluster_state **next)
{
    *next = state_ref(s);
    return 0;
}

static struct cluster_state *next_with_smap(const struct cluster_state *s, const struct smap *m)
{
    struct cluster_state *next = state_next(s);
    document_unref(next->smap.memory);
    next->smap = *m;
    return next;
}

/* The same, where the nodes have changed: who owned before is remembered, for as long as there may
 * be anything to be moved. */
static int follow_smap(const struct cluster_state *s, struct smap *m, bool remember,
                       const struct cluster_state **next, struct error *err)
{
    bool buckets = s->bmd.count > 0;
    if (!buckets)
        layout_forget(m);
    int r = layout_follow(&s->smap, m, remember && buckets, err);
    if (r != 0)
        document_unref(m->memory);
    else
        *next = next_with_smap(s, m);
    return r;
}

static struct cluster_state *next_with_bmd(const struct cluster_state *s, const struct bmd *b)
{
    struct cluster_state *next = state_next(s);
    document_unref(next->bmd.memory);
    next->bmd = *b;
    return next;
}

static struct cluster_state *next_with_jobs(const struct cluster_state *s, const struct jobs *j)
{
    struct cluster_state *next = state_next(s);
    document_unref(next->jobs.memory);
    next->jobs = *j;
    return next;
}

/* --- nodes ----------------------------------------------------------------------------------- */

/* What the map shall say of a node that has just said what it is: maintenance and decommissioning
 * are an operator's decision and stay; anything else ends with a sign of life. */
static struct node node_joined(const struct cluster_state *s, const struct command *cmd)
{
    const struct node *known = smap_node(&s->smap, cmd->node->id);
    struct node n = *cmd->node;
    n.state = NODE_ACTIVE;
    if (known != NULL && (known->state == NODE_MAINTENANCE || known->state == NODE_DECOMMISSIONING))
        n.state = known->state;
    n.since_ms = known != NULL && known->state == n.state ? known->since_ms : cmd->wall_ms;
    lag_follow(s, known, cmd->lost, &n);
    return n;
}

/* The map with `n`, new or changed. */
static void map_with(const struct cluster_state *s, const struct node *n, struct smap *m)
{
    smap_with(&s->smap, n, m);
    if (lag_is_news(n))
        m->lagged = s->version + 1;
}

/* What a target holds that was removed from the map proves nothing: it may have been written anew,
 * or deleted, since. */
static int check_new_target(const struct cluster_state *s, const struct command *cmd,
                            struct error *err)
{
    if (cmd->fresh || smap_node(&s->smap, cmd->node->id) != NULL)
        return 0;
    return error_set(err, E_MOUNTPATH,
                     "target '%.64s' is not in the map, and has been in this cluster before: what "
                     "it holds may be out of date; give it empty mountpaths, then it can join",
                     cmd->node->id);
}

/* The same process may ask twice: its first call's reply was lost. */
static int check_fresh_target(const struct cluster_state *s, const struct command *cmd,
                              struct error *err)
{
    const struct node *known = smap_node(&s->smap, cmd->node->id);
    if (!cmd->fresh || known == NULL || strcmp(known->boot, cmd->node->boot) == 0)
        return 0;
    return error_set(err, E_MOUNTPATH,
                     "target '%.64s' has been here before, and comes with empty mountpaths: its "
                     "objects would seem not to exist; see that its disks are mounted and start it "
                     "again, or, where they are lost for good, once with --mountpath-lost-ok=true",
                     cmd->node->id);
}

static int check_join(const struct cluster_state *s, const struct command *cmd, struct error *err)
{
    const struct node *spec = cmd->node;
    const struct node *known = smap_node(&s->smap, spec->id);
    if (known != NULL && known->role != spec->role)
        return error_set(err, E_EXISTS, "node '%s' is a %s already", spec->id,
                         node_role_name(known->role));
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    if (known == NULL && s->smap.count >= settings.nodes_max)
        return error_set(err, E_OVERLOAD, "the cluster has %zu nodes, as many as nodes_max allows",
                         s->smap.count);
    int r = 0;
    if (spec->role == NODE_TARGET && s->bmd.count > 0 && (r = check_new_target(s, cmd, err)) == 0)
        r = check_fresh_target(s, cmd, err);
    return r != 0 ? r : node_id_check(spec->id, err);
}

static int apply_node_join(const struct cluster_state *s, const struct command *cmd,
                           const struct cluster_state **next, struct error *err)
{
    int r = check_join(s, cmd, err);
    if (r != 0)
        return r;
    const struct node *known = smap_node(&s->smap, cmd->node->id);
    struct node n = node_joined(s, cmd);
    if (known != NULL && node_equal(known, &n))
        return keep(s, next);
    struct smap m;
    map_with(s, &n, &m);
    return follow_smap(s, &m, true, next, err);
}

static int apply_term_begin(const struct cluster_state *s, const struct command *cmd,
                            const struct cluster_state **next, struct error *err)
{
    const struct node *spec = cmd->node;
    if (spec->role != NODE_PROXY)
        return error_set(err, E_INVALID, "node '%s' is not a proxy and cannot be primary",
                         spec->id);
    const struct node *known = smap_node(&s->smap, spec->id);
    if (cmd->term == s->term && strcmp(s->primary, spec->id) == 0 && known != NULL &&
        node_same_spec(known, spec))
        return keep(s, next);
    if (cmd->term <= s->term)
        return error_set(err, E_STALE_MAP, "term %llu does not exceed the present one, %llu",
                         (unsigned long long)cmd->term, (unsigned long long)s->term);
    int r = check_join(s, cmd, err);
    if (r != 0)
        return r;
    struct node n = node_joined(s, cmd);
    struct smap m;
    smap_with(&s->smap, &n, &m);
    struct cluster_state *made = next_with_smap(s, &m);
    made->term = cmd->term;
    made->term_version = made->version;
    free(made->primary);
    made->primary = xstrdup(spec->id);
    *next = made;
    return 0;
}

/* A node in maintenance is not missed: that it does not answer changes nothing. */
#define MAY(state) (1u << (state))
static const unsigned node_moves[] = {
    [NODE_ACTIVE] = MAY(NODE_UNREACHABLE) | MAY(NODE_MAINTENANCE) | MAY(NODE_DECOMMISSIONING),
    [NODE_UNREACHABLE] = MAY(NODE_ACTIVE) | MAY(NODE_MAINTENANCE) | MAY(NODE_DECOMMISSIONING),
    [NODE_MAINTENANCE] = MAY(NODE_ACTIVE) | MAY(NODE_DECOMMISSIONING),
    [NODE_DECOMMISSIONING] = MAY(NODE_ACTIVE) | MAY(NODE_MAINTENANCE),
};

static int need_node(const struct cluster_state *s, const char *id, const struct node **out,
                     struct error *err)
{
    *out = smap_node(&s->smap, id);
    if (*out != NULL)
        return 0;
    return error_set(err, E_NODE_NOT_FOUND, "no node is called '%.64s'", id);
}

static bool is_leaving(enum node_state s)
{
    return s == NODE_MAINTENANCE || s == NODE_DECOMMISSIONING;
}

/* An owner is to own no more: somebody must be there to take what it has, and it must be able to
 * send it. */
static int check_leaves(const struct cluster_state *s, const struct command *cmd,
                        const struct node *n, struct error *err)
{
    if (!is_leaving(cmd->node_state) || !node_owns(n) || cmd->force || s->bmd.count == 0)
        return 0;
    if (n->state == NODE_UNREACHABLE)
        return error_set(
            err, E_NODE_STATE,
            "target '%s' does not answer, so that what it has cannot be moved off; "
            "bring it back, or use force: what only it has is then not to be had, or lost",
            n->id);
    if (smap_count(&s->smap, NODE_TARGET, NODE_ACTIVE) < 2)
        return error_set(err, E_NODE_STATE,
                         "no other target is active that could take what '%s' has", n->id);
    return 0;
}

static int apply_node_state(const struct cluster_state *s, const struct command *cmd,
                            const struct cluster_state **next, struct error *err)
{
    const struct node *known;
    int r = need_node(s, cmd->name, &known, err);
    if (r != 0)
        return r;
    if (known->state == cmd->node_state)
        return keep(s, next);
    if ((node_moves[known->state] & MAY(cmd->node_state)) == 0)
        return error_set(err, E_NODE_STATE, "node '%s' cannot go from %s to %s", known->id,
                         node_state_name(known->state), node_state_name(cmd->node_state));
    if (strcmp(known->id, s->primary) == 0)
        return error_set(err, E_NODE_STATE, "node '%s' is the primary, which stays active",
                         known->id);
    if ((r = check_leaves(s, cmd, known, err)) != 0)
        return r;
    struct node n = *known;
    n.state = cmd->node_state;
    n.since_ms = cmd->wall_ms;
    lag_follow(s, known, false, &n);
    struct smap m;
    map_with(s, &n, &m);
    return follow_smap(s, &m, true, next, err);
}

static int apply_node_remove(const struct cluster_state *s, const struct command *cmd,
                             const struct cluster_state **next, struct error *err)
{
    const struct node *known;
    int r = need_node(s, cmd->name, &known, err);
    if (r != 0)
        return r;
    if (known->state == NODE_ACTIVE)
        return error_set(err, E_NODE_STATE, "node '%s' is active and cannot be removed", known->id);
    struct smap m;
    smap_without(&s->smap, cmd->name, &m);
    /* With copies another target owns in its place, which has to be given what the others have. */
    return follow_smap(s, &m, node_owns(known) && bmd_has_copies(&s->bmd), next, err);
}

static int apply_moves_done(const struct cluster_state *s, const struct command *cmd,
                            const struct cluster_state **next, struct error *err)
{
    if (cmd->placed != s->smap.placed)
        return error_set(err, E_STALE_MAP,
                         "objects were moved by the owners of map %llu; those of map %llu are in "
                         "force",
                         (unsigned long long)cmd->placed, (unsigned long long)s->smap.placed);
    if (layout_is_settled(&s->smap))
        return keep(s, next);
    struct smap m;
    smap_settled(&s->smap, &m);
    *next = next_with_smap(s, &m);
    return 0;
}

static int check_repaired(const struct cluster_state *s, const struct command *cmd,
                          struct error *err)
{
    if (cmd->lagged == s->smap.lagged && cmd->placed == s->smap.placed)
        return 0;
    return error_set(
        err, E_STALE_MAP,
        "copies were compared when the map was at %llu (owners: %llu), and since then a "
        "target has fallen behind, or come: %llu (%llu)",
        (unsigned long long)cmd->lagged, (unsigned long long)cmd->placed,
        (unsigned long long)s->smap.lagged, (unsigned long long)s->smap.placed);
}

static int apply_lag_done(const struct cluster_state *s, const struct command *cmd,
                          const struct cluster_state **next, struct error *err)
{
    int r = check_repaired(s, cmd, err);
    if (r != 0)
        return r;
    struct smap m = s->smap;
    document_ref(m.memory);
    for (size_t i = 0; i < s->smap.count; i++) {
        struct node n = s->smap.nodes[i];
        struct smap changed;
        if (!lag_may_end(s, &n))
            continue;
        n.lag = LAG_NONE;
        n.missed_since = 0;
        smap_with(&m, &n, &changed);
        document_unref(m.memory);
        m = changed;
    }
    if (m.version == s->smap.version) {
        document_unref(m.memory);
        return keep(s, next);
    }
    m.version = s->smap.version + 1;
    *next = next_with_smap(s, &m);
    return 0;
}

/* --- buckets --------------------------------------------------------------------------------- */

static int apply_bucket_create(const struct cluster_state *s, const struct command *cmd,
                               const struct cluster_state **next, struct error *err)
{
    int r;
    if ((r = bucket_name_check(cmd->name, err)) != 0 ||
        (r = bucket_props_check(cmd->props, err)) != 0)
        return r;
    if (bmd_bucket(&s->bmd, cmd->name) != NULL)
        return error_set(err, E_BUCKET_EXISTS, "bucket '%s' exists", cmd->name);
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    if (s->bmd.count >= settings.buckets_max)
        return error_set(err, E_OVERLOAD,
                         "the cluster has %zu buckets, as many as buckets_max allows",
                         s->bmd.count);
    struct bucket b = {
        .id = s->next_bucket_id,
        .name = cmd->name,
        .created_ms = cmd->wall_ms,
        .props = *cmd->props,
        .filled = cmd->props->copies,
    };
    struct bmd m;
    bmd_with(&s->bmd, &b, &m);
    struct cluster_state *made = next_with_bmd(s, &m);
    made->next_bucket_id++;
    *next = made;
    return 0;
}

static int need_bucket(const struct cluster_state *s, const char *name, const struct bucket **out,
                       struct error *err)
{
    *out = bmd_bucket(&s->bmd, name);
    if (*out != NULL)
        return 0;
    return error_set(err, E_BUCKET_NOT_FOUND, "bucket '%.80s' does not exist", name);
}

static int apply_bucket_destroy(const struct cluster_state *s, const struct command *cmd,
                                const struct cluster_state **next, struct error *err)
{
    const struct bucket *known;
    int r = need_bucket(s, cmd->name, &known, err);
    if (r != 0)
        return r;
    struct bmd m;
    bmd_without(&s->bmd, cmd->name, &m);
    *next = next_with_bmd(s, &m);
    return 0;
}

/* What is in the bucket came from its backend, or it belongs to the bucket itself; that stays so.
 */
static int check_same_backend(const struct bucket_props *old, const struct bucket_props *now,
                              struct error *err)
{
    if (old->backend == NULL && now->backend == NULL)
        return 0;
    if (old->backend != NULL && now->backend != NULL &&
        backend_same_objects(old->backend, now->backend))
        return 0;
    return error_set(err, E_INVALID,
                     "field 'backend' is set when a bucket is created; after that "
                     "only the way there (endpoint, region, style, auth, profile) can change");
}

/* The copies that go may be the only ones that are complete. */
static int check_fewer_copies(const struct cluster_state *s, const struct bucket_props *old,
                              const struct bucket_props *now, struct error *err)
{
    for (size_t i = 0; i < s->smap.count && now->copies < old->copies; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->lag == LAG_MISSED)
            return error_set(err, E_NODE_STATE,
                             "target '%s' has missed writes, so that fewer copies might be those "
                             "that lack them; wait until it is back and repaired",
                             n->id);
    }
    return 0;
}

static int apply_bucket_props(const struct cluster_state *s, const struct command *cmd,
                              const struct cluster_state **next, struct error *err)
{
    const struct bucket *known;
    int r = need_bucket(s, cmd->name, &known, err);
    if (r != 0)
        return r;
    struct bucket b = *known;
    if ((r = bucket_props_from_json(cmd->patch, &b.props, err)) != 0 ||
        (r = bucket_props_check(&b.props, err)) != 0 ||
        (r = check_same_backend(&known->props, &b.props, err)) != 0 ||
        (r = check_fewer_copies(s, &known->props, &b.props, err)) != 0)
        return r;
    if (bucket_props_equal(&known->props, &b.props))
        return keep(s, next);
    if (b.filled > b.props.copies)
        b.filled = b.props.copies;
    if (b.props.copies > known->props.copies)
        b.raised = s->bmd.version + 1;
    else if (b.filled == b.props.copies)
        b.raised = 0;
    struct bmd m;
    bmd_with(&s->bmd, &b, &m);
    *next = next_with_bmd(s, &m);
    return 0;
}

static int apply_copies_filled(const struct cluster_state *s, const struct command *cmd,
                               const struct cluster_state **next, struct error *err)
{
    int r = check_repaired(s, cmd, err);
    if (r != 0)
        return r;
    struct bmd m = s->bmd;
    document_ref(m.memory);
    for (size_t i = 0; i < s->bmd.count; i++) {
        struct bucket b = s->bmd.buckets[i];
        struct bmd changed;
        if (b.filled == b.props.copies || b.raised > cmd->raised || !lag_spares_an_owner(s, &b))
            continue;
        b.filled = b.props.copies;
        b.raised = 0;
        bmd_with(&m, &b, &changed);
        document_unref(m.memory);
        m = changed;
    }
    if (m.version == s->bmd.version) {
        document_unref(m.memory);
        return keep(s, next);
    }
    m.version = s->bmd.version + 1;
    *next = next_with_bmd(s, &m);
    return 0;
}

/* Jobs go by a bucket's id; but what their users see of them, the spec and messages, has its name.
 */
static int check_unused(const struct cluster_state *s, const struct bucket *b, struct error *err)
{
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        if (!job_ended(job->state) && job_uses_bucket(job, b->id))
            return error_set(err, E_JOB_STATE,
                             "job '%s' works on bucket '%.80s'; wait for its end, or abort it",
                             job->id, b->name);
    }
    return 0;
}

static int apply_bucket_rename(const struct cluster_state *s, const struct command *cmd,
                               const struct cluster_state **next, struct error *err)
{
    const struct bucket *known;
    int r;
    if ((r = need_bucket(s, cmd->name, &known, err)) != 0 ||
        (r = bucket_name_check(cmd->text, err)) != 0)
        return r;
    if (strcmp(cmd->name, cmd->text) == 0)
        return keep(s, next);
    if (bmd_bucket(&s->bmd, cmd->text) != NULL)
        return error_set(err, E_BUCKET_EXISTS, "bucket '%s' exists", cmd->text);
    if ((r = check_unused(s, known, err)) != 0)
        return r;
    struct bmd m;
    bmd_renamed(&s->bmd, cmd->name, cmd->text, &m);
    *next = next_with_bmd(s, &m);
    return 0;
}

/* --- settings -------------------------------------------------------------------------------- */

static int apply_config_set(const struct cluster_state *s, const struct command *cmd,
                            const struct cluster_state **next, struct error *err)
{
    const char *present = config_get(&s->config, cmd->name);
    if (cmd->text != NULL) {
        int r = cluster_settings_check(cmd->name, cmd->text, err);
        if (r != 0)
            return r;
    }
    if (present == NULL ? cmd->text == NULL : cmd->text != NULL && strcmp(present, cmd->text) == 0)
        return keep(s, next);
    struct cluster_config c;
    if (cmd->text != NULL)
        config_with(&s->config, cmd->name, cmd->text, &c);
    else
        config_without(&s->config, cmd->name, &c);
    struct cluster_state *made = state_next(s);
    document_unref(made->config.memory);
    made->config = c;
    *next = made;
    return 0;
}

/* --- jobs ------------------------------------------------------------------------------------ */

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

static int apply_job_create(const struct cluster_state *s, const struct command *cmd,
                            const struct cluster_state **next, struct error *err)
{
    const struct job *known = jobs_find(&s->jobs, cmd->job->id);
    if (known != NULL && job_equal(known, cmd->job))
        return keep(s, next);
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
    *next = next_with_jobs(s, &j);
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
    if (to->state == JOB_STOPPING && to->stop_as != JOB_FAILED && to->stop_as != JOB_ABORTED)
        return error_set(err, E_JOB_STATE, "job '%s' cannot stop as %s", from->id,
                         job_state_name(to->stop_as));
    return 0;
}

static int apply_job_update(const struct cluster_state *s, const struct command *cmd,
                            const struct cluster_state **next, struct error *err)
{
    const struct job *known;
    int r;
    if ((r = need_job(s, cmd->job->id, &known, err)) != 0 ||
        (r = check_job_move(known, cmd->job, err)) != 0)
        return r;
    if (job_equal(known, cmd->job))
        return keep(s, next);
    struct jobs j;
    jobs_with(&s->jobs, cmd->job, &j);
    *next = next_with_jobs(s, &j);
    return 0;
}

static int apply_job_forget(const struct cluster_state *s, const struct command *cmd,
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
    *next = next_with_jobs(s, &j);
    return 0;
}

/* --- all at once ----------------------------------------------------------------------------- */

static int check_restore(const struct cluster_state *s, const struct command *cmd,
                         struct error *err)
{
    if (strcmp(cmd->restored->cluster_id, s->cluster_id) != 0)
        return error_set(err, E_WRONG_CLUSTER,
                         "the documents are those of cluster '%s', and this is cluster '%s'",
                         cmd->restored->cluster_id, s->cluster_id);
    if (cmd->seen_bmd != s->bmd.version || cmd->seen_config != s->config.version)
        return error_set(err, E_PRECONDITION,
                         "the documents have changed meanwhile: buckets are at version %llu, "
                         "settings at %llu",
                         (unsigned long long)s->bmd.version, (unsigned long long)s->config.version);
    return 0;
}

/* An operator decides what is true: a new epoch.  Nodes and jobs are what they are. */
static int apply_restore(const struct cluster_state *s, const struct command *cmd,
                         const struct cluster_state **next, struct error *err)
{
    const struct cluster_state *from = cmd->restored;
    int r = check_restore(s, cmd, err);
    if (r != 0)
        return r;
    struct cluster_state *made = state_next(s);
    document_unref(made->bmd.memory);
    document_unref(made->config.memory);
    made->bmd = from->bmd;
    made->config = from->config;
    document_ref(made->bmd.memory);
    document_ref(made->config.memory);
    made->bmd.version = s->bmd.version + 1;
    made->config.version = s->config.version + 1;
    if (from->next_bucket_id > made->next_bucket_id)
        made->next_bucket_id = from->next_bucket_id;
    made->term = state_next_term(s, (int64_t)cmd->term, true);
    made->term_version = made->version;
    *next = made;
    return 0;
}

static apply_fn *const appliers[] = {
    [CMD_TERM_BEGIN] = apply_term_begin,       [CMD_NODE_JOIN] = apply_node_join,
    [CMD_NODE_STATE] = apply_node_state,       [CMD_NODE_REMOVE] = apply_node_remove,
    [CMD_BUCKET_CREATE] = apply_bucket_create, [CMD_BUCKET_DESTROY] = apply_bucket_destroy,
    [CMD_BUCKET_PROPS] = apply_bucket_props,   [CMD_BUCKET_RENAME] = apply_bucket_rename,
    [CMD_CONFIG_SET] = apply_config_set,       [CMD_JOB_CREATE] = apply_job_create,
    [CMD_JOB_UPDATE] = apply_job_update,       [CMD_JOB_FORGET] = apply_job_forget,
    [CMD_MOVES_DONE] = apply_moves_done,       [CMD_LAG_DONE] = apply_lag_done,
    [CMD_COPIES_FILLED] = apply_copies_filled, [CMD_RESTORE] = apply_restore,
};

int command_apply(const struct cluster_state *s, const struct command *cmd,
                  const struct cluster_state **next, struct error *err)
{
    return appliers[cmd->kind](s, cmd, next, err);
}

/* --- copies ---------------------------------------------------------------------------------- */

struct command_box {
    struct command cmd;
    struct node node;
    struct bucket_props props;
    struct arena *arena;
};

static const char *copy_text(struct arena *a, const char *text)
{
    return text != NULL ? arena_strdup(a, text) : NULL;
}

static void copy_node(struct arena *a, const struct node *from, struct node *to)
{
    *to = *from;
    to->id = copy_text(a, from->id);
    to->public_url = copy_text(a, from->public_url);
    to->control_url = copy_text(a, from->control_url);
    to->data_url = copy_text(a, from->data_url);
    to->boot = copy_text(a, from->boot);
}

struct command *command_copy(const struct command *cmd)
{
    struct command_box *box = xcalloc(1, sizeof *box);
    box->arena = arena_new(256);
    box->cmd = *cmd;
    box->cmd.name = copy_text(box->arena, cmd->name);
    box->cmd.text = copy_text(box->arena, cmd->text);
    if (cmd->node != NULL) {
        copy_node(box->arena, cmd->node, &box->node);
        box->cmd.node = &box->node;
    }
    if (cmd->props != NULL) {
        box->props = *cmd->props;
        box->props.backend = copy_text(box->arena, cmd->props->backend);
        box->cmd.props = &box->props;
    }
    box->cmd.patch = json_deep_copy(cmd->patch); /* counts are for one thread */
    if (cmd->job != NULL)
        box->cmd.job = job_ref(cmd->job);
    if (cmd->restored != NULL)
        box->cmd.restored = state_ref(cmd->restored);
    return &box->cmd;
}

void command_free(struct command *cmd)
{
    if (cmd == NULL)
        return;
    struct command_box *box = (struct command_box *)cmd; /* its first member */
    json_decref(cmd->patch);
    job_unref(cmd->job);
    state_unref(cmd->restored);
    arena_free(box->arena);
    free(box);
}
