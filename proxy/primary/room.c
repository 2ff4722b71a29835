#include "proxy/primary/room.h"

#include <string.h>

#include "common/parse.h"

static bool takes_over(const struct node *n, const char *leaving)
{
    return node_owns(n) && strcmp(n->id, leaving) != 0;
}

static double weight_of_others(const struct smap *m, const char *leaving)
{
    double sum = 0;
    for (size_t i = 0; i < m->count; i++)
        sum += takes_over(&m->nodes[i], leaving) ? m->nodes[i].weight : 0;
    return sum;
}

int room_check(const struct smap *m, const char *leaving, uint64_t bytes, room_of_fn *room_of,
               void *ctx, struct error *err)
{
    double weights = weight_of_others(m, leaving);
    const struct node *worst = NULL;
    double worst_lacks = 0;
    uint64_t worst_room = 0;
    for (size_t i = 0; i < m->count && weights > 0; i++) {
        const struct node *n = &m->nodes[i];
        uint64_t room;
        if (!takes_over(n, leaving) || !room_of(ctx, n->id, &room))
            continue;
        double lacks = (double)bytes * n->weight / weights - (double)room;
        if (lacks > worst_lacks) {
            worst = n;
            worst_lacks = lacks;
            worst_room = room;
        }
    }
    if (worst == NULL)
        return 0;
    char all[16], room[16];
    format_size(bytes, all);
    format_size(worst_room, room);
    return error_set(err, E_NO_SPACE,
                     "target '%s' has %s of objects, and target '%s', with room for %s, would get "
                     "more than that of them; add a target or a mountpath, delete objects, or use "
                     "force: then what fits is moved",
                     leaving, all, worst->id, room);
}
