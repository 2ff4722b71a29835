#include "target/cold/list_owner.h"

#include <string.h>

#include "common/mem.h"

static bool is_lost(const struct node *n, const char *const *lost, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(lost[i], n->id) == 0)
            return true;
    }
    return false;
}

const struct node *list_owner(const struct cluster_state *s, const struct list_of_job *list,
                              const char *const *lost, size_t lost_count)
{
    _cleanup_free_ char *key = xprintf("%s/%s", list->job, list->prefix);
    _cleanup_free_ const struct node **ranked = xcalloc(s->smap.count + 1, sizeof *ranked);
    size_t count = smap_owners(&s->smap, list->bucket_id, key, s->smap.count, ranked);
    for (size_t i = 0; i < count; i++) {
        if (ranked[i]->state == NODE_ACTIVE && !is_lost(ranked[i], lost, lost_count))
            return ranked[i];
    }
    return NULL;
}
