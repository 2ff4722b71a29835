#include "target/node/quota_count.h"

#include <string.h>

#include "cluster/placement/owners.h"
#include "target/index/walk.h"

int quota_mark_of(struct mountpaths *m, const struct cluster_state *s, struct quota_mark *out,
                  struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    bool all_idle = true;
    *out = (struct quota_mark){.roster = set->roster->generation, .map = s->version};
    int code = mountpath_set_check_whole(set, err);
    for (size_t i = 0; i < set->count; i++) {
        bool idle;
        out->changes += index_changes(set->all[i]->index, &idle);
        all_idle = all_idle && idle;
    }
    if (!all_idle) /* a name that is being changed may be counted too early */
        *out = (struct quota_mark){0};
    return code;
}

bool quota_mark_same(const struct quota_mark *a, const struct quota_mark *b)
{
    return a->map != 0 && a->map == b->map && a->roster == b->roster && a->changes == b->changes;
}

struct counting {
    const struct cluster_state *state;
    const char *self;
    const struct bucket *bucket;
    struct quota_amount sum;
};

static bool leads(const struct counting *c, const char *name)
{
    struct owners o;
    owners_of(c->state, c->bucket, name, &o);
    return o.acting != NULL && strcmp(o.acting->id, c->self) == 0;
}

static enum index_answer look(void *ctx, const char *name, const struct index_record *record)
{
    struct counting *c = ctx;
    if (!record->tombstone && (!bucket_has_copies(c->bucket) || leads(c, name)))
        c->sum = quota_plus(c->sum, (struct quota_amount){.objects = 1, .bytes = record->size});
    return INDEX_PASS;
}

static int count_index(struct counting *c, struct index *x, const atomic_bool *stop,
                       struct error *err)
{
    struct index_walk w = {.bucket_id = c->bucket->id, .stop = stop, .more = true};
    int code = index_check(x, err);
    while (code == 0 && w.more)
        code = index_walk(x, &w, look, c, err);
    return code == 0 && atomic_load(stop) ? error_set(err, E_ABORTED, "the target stops") : code;
}

int quota_count(struct mountpaths *m, const struct cluster_state *s, const char *self,
                const struct bucket *b, const atomic_bool *stop, struct quota_amount *out,
                struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    struct counting c = {.state = s, .self = self, .bucket = b};
    int code = mountpath_set_check_whole(set, err);
    for (size_t i = 0; i < set->count && code == 0; i++)
        code = count_index(&c, set->all[i]->index, stop, err);
    *out = c.sum;
    return code;
}
