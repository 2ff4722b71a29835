#include "cluster/members/node_stats.h"

#include "common/jsonx.h"

const struct node_stat_row node_stat_rows[NODE_STATS] = {
#define STAT(name, how, meaning) {#name, STAT_##how},
#include "cluster/members/node_stats.def"
#undef STAT
};

json_t *node_stats_to_json(const struct node_stats *s)
{
    json_t *doc = json_object();
    for (size_t i = 0; i < NODE_STATS; i++)
        json_object_set_new(doc, node_stat_rows[i].name, json_integer((json_int_t)s->values[i]));
    return doc;
}

int node_stats_from_json(json_t *doc, struct node_stats *out, struct error *err)
{
    *out = (struct node_stats){0};
    if (doc == NULL)
        return 0;
    if (!json_is_object(doc))
        return error_set(err, E_JSON, "field 'stats' must be an object");
    int r = 0;
    for (size_t i = 0; i < NODE_STATS && r == 0; i++)
        r = json_get_u64(doc, "stats", node_stat_rows[i].name, &out->values[i], err);
    return r;
}
