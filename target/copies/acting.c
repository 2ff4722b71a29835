#include "target/copies/acting.h"

#include <string.h>

#include "cluster/placement/owners.h"
#include "cluster/placement/quorum.h"
#include "target/copies/copies.h"
#include "target/node/target.h"
#include "target/copies/dirty.h"

bool copies_is_let_in(const struct target *t, const struct cluster_state *s)
{
    const struct node *self = smap_node(&s->smap, t->id);
    return self != NULL && strcmp(self->boot, t->boot) == 0;
}

bool copies_keep_all(void *arg, const struct cluster_state *s)
{
    return bmd_has_copies(&s->bmd) && !copies_is_let_in(arg, s);
}

bool copies_keep_name(void *arg, uint64_t bucket_id, const char *name)
{
    const struct target *t = arg;
    return dirty_has(t->copies->dirty, bucket_id, name);
}

bool copies_must_compare(const struct target *t, const struct cluster_state *s,
                         const struct bucket *b, const struct owners *o, const char *name)
{
    return quorum_is_wanted(b) || owners_must_compare(s, o) || !copies_is_let_in(t, s) ||
           dirty_has(t->copies->dirty, b->id, name);
}

int copies_check_acting(const struct target *t, const struct owners *o, const char *name,
                        struct error *err)
{
    if (o->awaited != NULL)
        return error_set(err, E_NODE_UNREACHABLE,
                         "target '%s', which is unreachable, may alone have the newest of '%s'",
                         o->awaited->id, name);
    if (o->acting == NULL || strcmp(o->acting->id, t->id) != 0)
        return error_set(err, E_STALE_MAP,
                         "object '%s' is written and read through another owner by now; ask the "
                         "proxy again",
                         name);
    return 0;
}

int copies_take_state(struct target *t, uint64_t bucket_id, const char *name,
                      const struct cluster_state **s, const struct bucket **b, struct owners *o,
                      struct error *err)
{
    *s = state_current(t->state);
    *b = bmd_bucket_by_id(&(*s)->bmd, bucket_id);
    if (*b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    owners_of(*s, *b, name, o);
    return copies_check_acting(t, o, name, err);
}
