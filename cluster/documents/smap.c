#include "cluster/documents/smap.h"

#include <string.h>

#include "cluster/base/document.h"
#include "common/mem.h"
#include "hrw/hrw.h"

enum { STACK_NODES = 64 };

static size_t smap_find(const struct smap *m, const char *id, bool *found)
{
    return document_find(m->nodes, m->count, sizeof m->nodes[0], offsetof(struct node, id), id,
                         found);
}

const struct node *smap_node(const struct smap *m, const char *id)
{
    bool found;
    size_t at = smap_find(m, id, &found);
    return found ? &m->nodes[at] : NULL;
}

size_t smap_count(const struct smap *m, enum node_role role, enum node_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < m->count; i++)
        n += m->nodes[i].role == role && m->nodes[i].state == state;
    return n;
}

size_t smap_owners(const struct smap *m, uint64_t bucket_id, const char *object, size_t n,
                   const struct node **out)
{
    struct hrw_node on_stack[STACK_NODES];
    size_t ranks_on_stack[STACK_NODES];
    _cleanup_free_ struct hrw_node *on_heap = NULL;
    _cleanup_free_ size_t *ranks_on_heap = NULL;
    struct hrw_node *nodes = on_stack;
    size_t *ranks = ranks_on_stack;
    if (m->count > STACK_NODES) {
        nodes = on_heap = xcalloc(m->count, sizeof *on_heap);
        ranks = ranks_on_heap = xcalloc(m->count, sizeof *ranks_on_heap);
    }
    /* A node that owns nothing has weight 0 here: never chosen, and indices stay the map's. */
    for (size_t i = 0; i < m->count; i++) {
        const struct node *node = &m->nodes[i];
        nodes[i] = (struct hrw_node){node->seed, node_owns(node) ? node->weight : 0};
    }
    uint64_t key = hrw_key(bucket_id, object, strlen(object));
    size_t found = hrw_rank(key, nodes, m->count, n < m->count ? n : m->count, ranks);
    for (size_t i = 0; i < found; i++)
        out[i] = &m->nodes[ranks[i]];
    return found;
}
