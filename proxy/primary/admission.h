/* Who may be a member, as the primary decides it when a node registers or says that it lives. Pure:
 * the membership (cluster/members/membership.h), the documents and the time come in. */
#pragma once

#include "cluster/command/command.h"
#include "cluster/members/membership.h"

/* What a node holds from earlier, as it says when it registers. */
struct node_past {
    const char *cluster; /* "": it has seen none */
    uint64_t term, version;
    bool lost; /* it had more, and its operator has said that this is gone */
};

/* 0: it counts as heard, and *join is to be committed (it borrows `n`).  E_WRONG_CLUSTER;
 * E_STALE_MAP where it has seen what this primary has not; what the join's command or the
 * membership refuse. */
int admission_register(const struct cluster_state *s, struct membership *m, const struct node *n,
                       const struct node_past *past, uint64_t now_ms, int64_t wall_ms,
                       struct command *join, struct error *err);
/* 0: it counts as heard.  E_NODE_NOT_FOUND: it must register; E_STALE_MAP as above. */
int admission_keepalive(const struct cluster_state *s, struct membership *m,
                        const struct keepalive *k, uint64_t now_ms, struct error *err);
