/* A proxy of the simulation, as its two halves see it: proxy.c (follower, election, role) and
 * primary.c (what only the primary has). */
#pragma once

#include "cluster/members/membership.h"
#include "cluster/documents/state_holder.h"
#include "proxy/metastore/election.h"
#include "proxy/metastore/etcd_documents.h"
#include "proxy/primary/follower_plan.h"
#include "proxy/jobs/jobs.h"
#include "proxy/metastore/metastore.h"
#include "proxy/push/push.h"
#include "proxy/metastore/writer.h"
#include "tests/sim/sim.h"

enum proxy_role { FOLLOWER, LOADING, BEGINNING, PRIMARY, ENDING };

struct posted {
    struct posted *next;
    struct change *change;
};

struct proxy_sim {
    struct world *w;
    unsigned index;
    int place;
    bool is_sole; /* the primary, for ever: of an embedded metastore */
    bool electable;
    struct state_holder *holder;
    bool ready; /* it has a state to serve from */
    /* What outlives a crash. */
    const struct cluster_state *file;    /* a follower's */
    const struct cluster_state *durable; /* the embedded metastore's */
    const struct cluster_state *before;  /* that it was before its last change */
    const struct cluster_state *left;    /* by the last term, for the one that begins */
    const struct cluster_state *maybe;   /* a commit that failed, and may yet be found */
    /* The follower. */
    struct follower_plan plan;
    bool follows;
    bool asking;
    bool unsaved;
    /* The election. */
    struct election election;
    bool calling;
    uint64_t wake_at;
    uint64_t told;
    enum metastore_known known;
    int known_place;
    struct etcd_fence fence;
    /* The role. */
    enum proxy_role role;
    uint64_t leads; /* the election under which it is, or is to be, primary */
    uint64_t load_end_ms;
    /* The single writer. */
    struct writer *writer;
    struct posted *posted; /* on its way there */
    struct posted **posted_end;
    bool closing;
    struct writing {
        bool active;
        const struct cluster_state *from, *to;
        json_t *body;
        struct election_change change;
    } writing;
    /* What only the primary has. */
    bool is_primary;
    struct membership *membership;
    struct pusher *pusher;
    struct jobs_driver *jobs;
    bool parts_closed;
    bool rebalancing; /* its next step is being committed */
    uint64_t placed, placed_ms;
    uint64_t judged_ms, drove_ms; /* the last ticks of these */
};

/* proxy.c */
bool proxy_leads(const struct proxy_sim *p);
void proxy_put_in_force(struct proxy_sim *p, const struct cluster_state *s);
void proxy_resign(struct proxy_sim *p);
/* One turn of the thread that stands for election; arg: the proxy. */
void proxy_election_run(struct world *w, void *arg);
void proxy_follow(struct proxy_sim *p, bool follows);
struct node proxy_node(const struct proxy_sim *p, char url[static 24]);
void proxy_role_changed(struct proxy_sim *p);

/* primary.c */
void writer_open(struct proxy_sim *p);
void writer_shut(struct proxy_sim *p); /* all that waits is refused */
void proxy_post(struct proxy_sim *p, struct change *c);
void primary_start(struct proxy_sim *p, const struct cluster_state *before);
void primary_tick(struct proxy_sim *p);
/* Nothing is begun any more; primary_stop() once what was begun has ended. */
void primary_close(struct proxy_sim *p);
void primary_stop(struct proxy_sim *p);
void primary_serve_register(struct proxy_sim *p, struct call *c);
void primary_serve_keepalive(struct proxy_sim *p, struct call *c);
void primary_serve_change(struct proxy_sim *p, struct call *c);
