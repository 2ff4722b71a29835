/* Objects, as far as their placement goes: who has which, and what a rebalance moves.  Which name
 * is whose, and who has to be asked, is the code of cluster/documents/smap.c and
 * cluster/documents/layout.c; when what is moved is proxy/jobs/rebalance_job.c. */
#include <stdio.h>
#include <string.h>

#include "cluster/documents/layout.h"
#include "common/jsonx.h"
#include "tests/sim/sim.h"

enum { OBJECTS = 12, OBJECTS_MAX = OBJECTS * NODES_MAX / 8, OBJECT_NAME = 24, BUCKET = 4711 };

struct objects_sim {
    bool written;
    unsigned count;
    bool has[TARGETS_MAX][OBJECTS_MAX];
    bool under_way[TARGETS_MAX][OBJECTS_MAX]; /* the mutant's: in no store while it is sent */
};

static const char *object_name(unsigned object, char out[static OBJECT_NAME])
{
    snprintf(out, OBJECT_NAME, "object-%u", object);
    return out;
}

/* The target that owns it by this map, or -1. */
static int owner_of(const struct world *w, const struct smap *m, unsigned object)
{
    char name[OBJECT_NAME];
    const struct node *owner;
    if (smap_owners(m, BUCKET, object_name(object, name), 1, &owner) == 0)
        return -1;
    return (int)target_index(place_of_name(w, owner->id));
}

void objects_write(struct world *w)
{
    for (unsigned i = 0; i < w->objects->count; i++)
        w->objects->has[owner_of(w, &check_head(w)->smap, i)][i] = true;
    w->objects->written = true;
}

/* --- moves ----------------------------------------------------------------------------------- */

/* An owner takes nothing that was sent by other owners than those that it knows. */
static bool send(struct world *w, unsigned from, unsigned to, unsigned object, uint64_t placed)
{
    int a = target_place(from);
    int b = target_place(to);
    if (!w->places[b].up || w->places[b].thaw_at > w->now || net_loses(w, a, b) ||
        target_sim_state(w, to)->smap.placed != placed)
        return false;
    world_note(w, a, "sends object-%u to %s", object, w->places[b].name);
    run_tally_now->moves++;
    w->objects->has[to][object] = true;
    if (net_loses(w, b, a)) /* the receipt: it stays at both */
        return false;
    w->objects->has[from][object] = w->objects->under_way[from][object] = false;
    return true;
}

static bool is_to_move(const struct world *w, const struct smap *m, unsigned index, unsigned object)
{
    if (!w->objects->has[index][object] && !w->objects->under_way[index][object])
        return false;
    int owner = owner_of(w, m, object);
    return owner >= 0 && owner != (int)index;
}

void objects_rebalance_begins(struct world *w, unsigned index)
{
    const struct smap *m = &target_sim_state(w, index)->smap;
    bool changed = false;
    for (unsigned i = 0; w->mutant == MUTANT_early_drop && i < w->objects->count; i++) {
        if (!is_to_move(w, m, index, i))
            continue;
        w->objects->under_way[index][i] = changed = true;
        w->objects->has[index][i] = false;
    }
    if (changed)
        objects_check(w, check_head(w));
}

bool objects_rebalance(struct world *w, unsigned index, const struct job *job)
{
    const struct smap *m = &target_sim_state(w, index)->smap;
    uint64_t placed = (uint64_t)json_integer_value(json_object_get(job->spec, "placed"));
    bool success = m->placed == placed;
    bool changed = false;
    for (unsigned i = 0; i < w->objects->count && success; i++) {
        if (!is_to_move(w, m, index, i))
            continue;
        success = send(w, index, (unsigned)owner_of(w, m, i), i, placed);
        changed = true;
    }
    if (changed)
        objects_check(w, check_head(w));
    return success;
}

/* --- what must hold -------------------------------------------------------------------------- */

static bool is_known(struct world *w, const struct smap *m, unsigned object, int owner)
{
    char name[OBJECT_NAME];
    const struct node *ask[LAYOUTS_MAX];
    size_t count = layout_ask(m, BUCKET, object_name(object, name), 1,
                              w->places[target_place((unsigned)owner)].name, false, ask);
    for (size_t i = 0; i < count; i++) {
        int place = place_of_name(w, ask[i]->id);
        if (w->objects->has[target_index(place)][object])
            return true;
    }
    return w->objects->has[owner][object];
}

void objects_check(struct world *w, const struct cluster_state *s)
{
    for (unsigned i = 0; w->objects->written && i < w->objects->count; i++) {
        int owner = owner_of(w, &s->smap, i);
        if (owner >= 0 && !is_known(w, &s->smap, i, owner))
            world_fail(w,
                       "an object's owner has it, or knows who has it: by map %llu.%llu %s owns "
                       "object-%u",
                       (unsigned long long)s->term, (unsigned long long)s->version,
                       w->places[target_place((unsigned)owner)].name, i);
    }
}

void objects_new(struct world *w)
{
    w->objects = xcalloc(1, sizeof *w->objects);
    w->objects->count = OBJECTS * w->scale;
}

void objects_free(struct world *w)
{
    free(w->objects);
}
