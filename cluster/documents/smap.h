/* The map: the nodes of the cluster, and by which sets of owners objects may still lie.
 * cluster/documents/smap_change.h makes the next map, cluster/documents/layout.h reads the earlier
 * sets. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cluster/documents/node.h"

struct document; /* cluster/documents/document.h */

/* Who owned by an earlier map, as far as HRW must know: cluster/documents/layout.h. */
struct layout_member {
    const char *id;
    uint32_t weight;
    uint64_t seed;
};
struct layout {
    uint64_t number; /* smap.placed of that map */
    size_t count;
    struct layout_member *members; /* sorted by id */
};

struct smap {
    uint64_t version;
    size_t count;
    struct node *nodes;   /* sorted by id */
    uint64_t placed;      /* the version with which the present set of owners began */
    size_t earlier_count; /* sets of owners by which objects may still lie, oldest first */
    struct layout *earlier;
    uint64_t lagged; /* the state's version with which a target last fell behind, or came back so */
    struct document *memory;
};

const struct node *smap_node(const struct smap *m, const char *id); /* or NULL */
size_t smap_count(const struct smap *m, enum node_role role, enum node_state state);
/* The owners of (bucket, object): the `n` highest-weighted targets that are active or unreachable
 * (those in maintenance or decommissioning own nothing), best first.  Returns how many there are
 * (<= n). */
size_t smap_owners(const struct smap *m, uint64_t bucket_id, const char *object, size_t n,
                   const struct node **out);
