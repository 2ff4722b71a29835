#include "proxy/primary/admission.h"

#include <string.h>

/* `fresh`: it has no past, and its operator has not said that what it had is lost. */
static int check_past(const struct cluster_state *s, const char *id, const struct node_past *past,
                      bool *fresh, struct error *err)
{
    *fresh = past->cluster[0] == '\0' && !past->lost;
    if (past->cluster[0] == '\0')
        return 0;
    if (strcmp(past->cluster, s->cluster_id) != 0)
        return error_set(err, E_WRONG_CLUSTER,
                         "node '%s' belongs to cluster '%.64s', this is cluster '%s'", id,
                         past->cluster, s->cluster_id);
    return state_check_history(s, past->term, past->version, err);
}

/* Before it counts as heard: who is refused for good becomes unreachable, however often it asks. */
static int check_join(const struct cluster_state *s, const struct command *join, struct error *err)
{
    _cleanup_state_ const struct cluster_state *next = NULL;
    return command_apply(s, join, &next, err);
}

int admission_register(const struct cluster_state *s, struct membership *m, const struct node *n,
                       const struct node_past *past, uint64_t now_ms, int64_t wall_ms,
                       struct command *join, struct error *err)
{
    bool fresh;
    int r = check_past(s, n->id, past, &fresh, err);
    *join = (struct command){
        .kind = CMD_NODE_JOIN, .node = n, .fresh = fresh, .lost = past->lost, .wall_ms = wall_ms};
    if (r != 0 || (r = check_join(s, join, err)) != 0)
        return r;
    return membership_register(m, &s->smap, n, now_ms, err);
}

/* A node that is not known is told so first: what it has seen may be of another cluster. */
int admission_keepalive(const struct cluster_state *s, struct membership *m,
                        const struct keepalive *k, uint64_t now_ms, struct error *err)
{
    const struct node *known = smap_node(&s->smap, k->id);
    bool is_this_run = known != NULL && strcmp(known->boot, k->boot) == 0;
    int r = is_this_run ? state_check_history(s, k->term, k->version, err) : 0;
    return r != 0 ? r : membership_keepalive(m, &s->smap, k, now_ms, err);
}
