#include "proxy/primary/recovery_plan.h"

#include <string.h>
#include <xxhash.h>

#include "common/jsonx.h"
#include "common/mem.h"

uint64_t recovery_digest(const struct cluster_state *s)
{
    _cleanup_json_ json_t *doc = state_to_json(s);
    _cleanup_free_ char *text = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
    return XXH3_64bits(text, strlen(text));
}

static bool is_wanted(const struct recovery_copy *c, const struct recovery_wish *wish)
{
    return c->state != NULL &&
           (wish->cluster[0] == '\0' || strcmp(c->state->cluster_id, wish->cluster) == 0) &&
           (wish->node[0] == '\0' || strcmp(c->node, wish->node) == 0);
}

static int check_one_cluster(const struct recovery_copy *a, const struct recovery_copy *b,
                             struct error *err)
{
    if (strcmp(a->state->cluster_id, b->state->cluster_id) == 0)
        return 0;
    return error_set(err, E_INVALID,
                     "node '%s' is of cluster '%s', and node '%s' of cluster '%s': say which",
                     a->node, a->state->cluster_id, b->node, b->state->cluster_id);
}

static int check_agreement(const struct recovery_copy *best, const struct recovery_copy *copies,
                           size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct recovery_copy *c = &copies[i];
        if (c->state != NULL && strcmp(c->state->cluster_id, best->state->cluster_id) == 0 &&
            state_compare(c->state, best->state) == 0 && c->digest != best->digest)
            return error_set(err, E_CORRUPT,
                             "nodes '%s' and '%s' have different documents of version %llu.%llu: "
                             "say whose are right",
                             best->node, c->node, (unsigned long long)c->state->term,
                             (unsigned long long)c->state->version);
    }
    return 0;
}

static size_t count_targets(const struct smap *m)
{
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++)
        count += m->nodes[i].role == NODE_TARGET;
    return count;
}

static int check_present(const struct cluster_state *present, const struct cluster_state *best,
                         struct error *err)
{
    bool same = strcmp(present->cluster_id, best->cluster_id) == 0;
    size_t targets = count_targets(&present->smap);
    if (same && state_check_history(present, best->term, best->version, NULL) == 0)
        return error_set(err, E_EXISTS,
                         "there is nothing to recover: this primary has what the nodes have seen");
    if (same || (present->bmd.count == 0 && targets == 0))
        return 0;
    return error_set(err, E_WRONG_CLUSTER,
                     "this proxy is the primary of cluster '%s', which has %zu buckets and %zu "
                     "targets: recover '%s' with one that has an empty directory",
                     present->cluster_id, present->bmd.count, targets, best->cluster_id);
}

int recovery_choose(const struct cluster_state *present, const struct recovery_copy *copies,
                    size_t count, const struct recovery_wish *wish, size_t *best, struct error *err)
{
    const struct recovery_copy *chosen = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct recovery_copy *c = &copies[i];
        if (!is_wanted(c, wish))
            continue;
        int r = chosen != NULL ? check_one_cluster(chosen, c, err) : 0;
        if (r != 0)
            return r;
        if (chosen == NULL || state_compare(c->state, chosen->state) > 0)
            chosen = c;
    }
    if (chosen == NULL)
        return error_set(err, E_NOT_FOUND,
                         "no node with documents of this cluster has asked to join since this "
                         "proxy started: start the targets with --join and this proxy's address");
    int r = wish->node[0] == '\0' ? check_agreement(chosen, copies, count, err) : 0;
    *best = (size_t)(chosen - copies);
    return r != 0 ? r : check_present(present, chosen->state, err);
}

bool recovery_is_heard(const struct cluster_state *chosen, const struct recovery_copy *copies,
                       size_t count, const char *node)
{
    for (size_t i = 0; i < count; i++) {
        const struct recovery_copy *c = &copies[i];
        if (c->state != NULL && strcmp(c->node, node) == 0 &&
            strcmp(c->state->cluster_id, chosen->cluster_id) == 0)
            return true;
    }
    return false;
}

int recovery_check_heard(const struct recovery_copy *chosen, const struct recovery_copy *copies,
                         size_t count, const struct recovery_wish *wish, const char *self,
                         struct error *err)
{
    const struct smap *m = &chosen->state->smap;
    for (size_t i = 0; wish->node[0] == '\0' && i < m->count; i++) {
        const char *id = m->nodes[i].id;
        if (strcmp(id, self) != 0 && !recovery_is_heard(chosen->state, copies, count, id))
            return error_set(err, E_PRECONDITION,
                             "node '%s' has not given its copy of the documents, and may know "
                             "more: start it and repeat the command, or, where it is lost, take "
                             "the copy of node '%s' with --node %s",
                             id, chosen->node, chosen->node);
    }
    return 0;
}
