#include "cluster/placement/upload_node.h"

const struct node *upload_node(const struct smap *m, const struct upload_id *id)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->nodes[i].role == NODE_TARGET && m->nodes[i].seed == id->seed)
            return &m->nodes[i];
    }
    return NULL;
}

/* An active target without some of its mountpaths answers, although others pass it over. */
bool upload_node_answers(const struct node *n)
{
    return n->state == NODE_ACTIVE || node_is_present(n);
}

int upload_node_find(const struct smap *m, const char *id, const struct node **out,
                     struct error *err)
{
    struct upload_id parsed;
    int code = upload_id_parse(id, &parsed, err);
    if (code != 0)
        return code;
    const struct node *n = upload_node(m, &parsed);
    if (n == NULL)
        return error_set(err, E_NOT_FOUND,
                         "upload '%s' does not exist: no target of the cluster has begun it", id);
    if (!upload_node_answers(n))
        return error_set(err, E_NODE_UNREACHABLE, "target '%s', which has upload '%s', is %s",
                         n->id, id, node_state_name(n->state));
    *out = n;
    return 0;
}
