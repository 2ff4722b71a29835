/* One node of the map: its role, its addresses, its state, and how far its copies may be behind. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/error.h"

enum node_role { NODE_PROXY, NODE_TARGET };
/* active: takes part.  unreachable: committed as not answering; an owner in this state gives 503
 * for its objects.  maintenance: owns nothing, what it has is moved off, and it may come back.
 * decommissioning: the same, and when it has nothing any more it leaves the map. */
enum node_state { NODE_ACTIVE, NODE_UNREACHABLE, NODE_MAINTENANCE, NODE_DECOMMISSIONING };
/* How far a target's copies may be behind those of others: cluster/placement/owners.h says what
 * follows from it, cluster/placement/lag.h how it comes and goes. */
enum node_lag { LAG_NONE, LAG_RESTARTED, LAG_MISSED };

struct node {
    const char *id; /* "t1": unique, permanent; [a-zA-Z0-9_.-]{1,63} */
    enum node_role role;
    enum node_state state;
    const char *public_url; /* "http://127.0.0.1:8081" or "https://…", without a trailing slash */
    const char *control_url;
    const char *data_url;
    uint32_t weight;  /* capacity weight for HRW; 1024 is one unit */
    uint64_t seed;    /* HRW seed: xxh3-64 of the id */
    const char *boot; /* id of this run of the daemon */
    int64_t since_ms; /* wall time of the last change of state */
    enum node_lag lag;
    uint64_t missed_since; /* with LAG_MISSED: the state's version from which on writes went without
                            * it; 0: it may lack anything */
    uint64_t gone_since;   /* while it is not active: the state's version that made it so */
    /* 0, or the version since which buckets with several copies pass it over though its state does
     * not say so: some of its mountpaths are not to be had, or it left in order and does not
     * answer. */
    uint64_t absent_since;
};

/* Is it one of those that objects are placed on? */
bool node_owns(const struct node *n);
/* Does it take part, or can it at least be asked, where others have the same (buckets with several
 * copies)? */
bool node_is_present(const struct node *n);
/* One node, as it stands in the smap and as it registers; `path` goes before the fields' names in
 * messages ("" at the top).  Texts are copied into the arena. */
json_t *node_to_json(const struct node *n);
int node_from_json(json_t *doc, const char *path, struct arena *a, struct node *out,
                   struct error *err);
/* Everything but state and since: what a node says of itself. */
bool node_same_spec(const struct node *a, const struct node *b);
bool node_equal(const struct node *a, const struct node *b);

const char *node_lag_name(enum node_lag l);
int node_lag_from_name(const char *name, enum node_lag *l, struct error *err);
const char *node_role_name(enum node_role r);
int node_role_from_name(const char *name, enum node_role *r, struct error *err);
const char *node_state_name(enum node_state s);
int node_state_from_name(const char *name, enum node_state *s, struct error *err);
