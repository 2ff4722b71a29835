#include "proxy/primary/term.h"

#include <string.h>

int term_check_base(const struct cluster_state *now, const struct cluster_state *found,
                    const char *place, struct error *err)
{
    if (now->cluster_id[0] == '\0')
        return 0;
    if (found == NULL)
        return error_set(
            err, E_WRONG_CLUSTER,
            "etcd has no documents below '%s', and this proxy belongs to cluster '%s': "
            "give etcd its data back, or start a proxy with --import FILE, FILE being "
            "the newest state document that a node has kept",
            place, now->cluster_id);
    if (strcmp(now->cluster_id, found->cluster_id) != 0)
        return error_set(err, E_WRONG_CLUSTER,
                         "this proxy belongs to cluster '%s', and the documents below '%s' in etcd "
                         "are those of cluster '%s'",
                         now->cluster_id, place, found->cluster_id);
    return state_check_history(found, now->term, now->version, err);
}

struct command term_begin(const struct cluster_state *base, const struct node *self,
                          uint64_t revision, bool imported, int64_t wall_ms)
{
    return (struct command){
        .kind = CMD_TERM_BEGIN,
        .node = self,
        .term = state_next_term(base, (int64_t)revision, imported),
        .wall_ms = wall_ms,
    };
}
