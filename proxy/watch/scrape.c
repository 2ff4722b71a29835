#include "proxy/watch/scrape.h"

#include <string.h>

/* "https://[::1]:8080" has the scheme "https" and the address "[::1]:8080". */
static json_t *group(const struct cluster_state *s, const struct node *n)
{
    const char *colon = strstr(n->public_url, "://");
    if (colon == NULL)
        return NULL;
    return json_pack("{s:[s], s:{s:s%, s:s, s:s, s:s}}", "targets", colon + 3, "labels",
                     "__scheme__", n->public_url, (size_t)(colon - n->public_url), "cluster",
                     s->cluster_id, "node", n->id, "node_role", node_role_name(n->role));
}

json_t *scrape_view(const struct cluster_state *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->smap.count; i++) {
        json_t *one = group(s, &s->smap.nodes[i]);
        if (one != NULL)
            json_array_append_new(list, one);
    }
    return list;
}
