/* Commands on nodes, and the one that begins a term. */
#include "cluster/command/command.h"
#include "cluster/command/parts.h"

#include <string.h>

#include "cluster/placement/lag.h"
#include "cluster/documents/layout.h"
#include "cluster/documents/settings.h"
#include "common/mem.h"

/* The nodes have changed: who owned before is remembered, for as long as there may
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
        *next = command_next_smap(s, m);
    return r;
}

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

int command_node_join(const struct cluster_state *s, const struct command *cmd,
                      const struct cluster_state **next, struct error *err)
{
    int r = check_join(s, cmd, err);
    if (r != 0)
        return r;
    const struct node *known = smap_node(&s->smap, cmd->node->id);
    struct node n = node_joined(s, cmd);
    if (known != NULL && node_equal(known, &n))
        return command_keep(s, next);
    struct smap m;
    map_with(s, &n, &m);
    return follow_smap(s, &m, true, next, err);
}

int command_term_begin(const struct cluster_state *s, const struct command *cmd,
                       const struct cluster_state **next, struct error *err)
{
    const struct node *spec = cmd->node;
    if (spec->role != NODE_PROXY)
        return error_set(err, E_INVALID, "node '%s' is not a proxy and cannot be primary",
                         spec->id);
    const struct node *known = smap_node(&s->smap, spec->id);
    if (cmd->term == s->term && strcmp(s->primary, spec->id) == 0 && known != NULL &&
        node_same_spec(known, spec))
        return command_keep(s, next);
    if (cmd->term <= s->term)
        return error_set(err, E_STALE_MAP, "term %llu does not exceed the present one, %llu",
                         (unsigned long long)cmd->term, (unsigned long long)s->term);
    int r = check_join(s, cmd, err);
    if (r != 0)
        return r;
    struct node n = node_joined(s, cmd);
    struct smap m;
    smap_with(&s->smap, &n, &m);
    struct cluster_state *made = command_next_smap(s, &m);
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
            "bring it back, or repeat this with --force: what only it has is then unavailable, or "
            "lost",
            n->id);
    if (smap_count(&s->smap, NODE_TARGET, NODE_ACTIVE) < 2)
        return error_set(err, E_NODE_STATE,
                         "no other target is active that could take what '%s' has", n->id);
    return 0;
}

int command_node_state(const struct cluster_state *s, const struct command *cmd,
                       const struct cluster_state **next, struct error *err)
{
    const struct node *known;
    int r = need_node(s, cmd->name, &known, err);
    if (r != 0)
        return r;
    if (known->state == cmd->node_state)
        return command_keep(s, next);
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

int command_node_absent(const struct cluster_state *s, const struct command *cmd,
                        const struct cluster_state **next, struct error *err)
{
    const struct node *known;
    int r = need_node(s, cmd->name, &known, err);
    if (r != 0)
        return r;
    if (known->role != NODE_TARGET || known->state == NODE_UNREACHABLE ||
        (known->absent_since != 0) == cmd->absent)
        return command_keep(s, next);
    struct node n = *known;
    n.absent_since = cmd->absent ? s->version + 1 : 0;
    lag_of_absent(s, &n);
    struct smap m;
    map_with(s, &n, &m);
    *next = command_next_smap(s, &m);
    return 0;
}

int command_node_remove(const struct cluster_state *s, const struct command *cmd,
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

int command_moves_done(const struct cluster_state *s, const struct command *cmd,
                       const struct cluster_state **next, struct error *err)
{
    if (cmd->placed != s->smap.placed)
        return error_set(err, E_STALE_MAP,
                         "objects were moved by the owners of map %llu; those of map %llu are in "
                         "force",
                         (unsigned long long)cmd->placed, (unsigned long long)s->smap.placed);
    if (layout_is_settled(&s->smap))
        return command_keep(s, next);
    struct smap m;
    smap_settled(&s->smap, &m);
    *next = command_next_smap(s, &m);
    return 0;
}

int command_check_repaired(const struct cluster_state *s, const struct command *cmd,
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

int command_lag_done(const struct cluster_state *s, const struct command *cmd,
                     const struct cluster_state **next, struct error *err)
{
    int r = command_check_repaired(s, cmd, err);
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
        return command_keep(s, next);
    }
    m.version = s->smap.version + 1;
    *next = command_next_smap(s, &m);
    return 0;
}
