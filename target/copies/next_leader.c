/* What becomes of a write whose leader leads no more (commit.h). */
#include "target/copies/commit.h"

#include <string.h>

#include "cluster/placement/owners.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/copies/copies.h"
#include "target/copies/dirty.h"
#include "target/copies/dirty_worker.h"
#include "target/copies/earlier_owners.h"
#include "target/node/target.h"

enum { PAUSE_MS = 50 };

enum reply { REPLY_MADE, REPLY_IN_DOUBT, REPLY_LATER };

/* What it has is looked at after it has settled the name: versions only grow, so that this version
 * was settled. */
static enum reply ask_leader(struct target *t, const struct cluster_state *s,
                             const struct node *leader, struct dirty_name *n, struct error *err)
{
    const struct dirty_name *const names[] = {n};
    struct object_held held;
    bool settled;
    if (dirty_ask(t, s, leader, DIRTY_IS_SETTLED, names, 1, &settled, err) != 0 || !settled ||
        earlier_ask_node(t, s, leader, n->bucket_id, n->name, &held, err) != 0)
        return REPLY_LATER;
    return held.found && version_compare(&held.version, &n->version) == 0 ? REPLY_MADE
                                                                          : REPLY_IN_DOUBT;
}

static enum reply ask(struct target *t, struct dirty_name *n, struct error *err)
{
    struct owners owners;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, n->bucket_id);
    if (b == NULL)
        return REPLY_IN_DOUBT;
    owners_of(s, b, n->name, &owners);
    if (owners.acting == NULL)
        return REPLY_LATER;
    if (strcmp(owners.acting->id, t->id) == 0 || owners.awaited != NULL ||
        owners_must_compare(s, &owners))
        return REPLY_IN_DOUBT;
    return ask_leader(t, s, owners.acting, n, err);
}

bool copies_next_leader_has(struct target *t, uint64_t bucket_id, const char *name,
                            const struct version *v)
{
    _cleanup_free_ char *copy = xstrdup(name);
    struct dirty_name n = {.bucket_id = bucket_id, .version = *v, .name = copy};
    uint64_t until_ms = clock_ms() + t->params.call_timeout;
    struct error err;
    enum reply reply;
    do {
        err = ERROR_INIT;
        reply = ask(t, &n, &err);
    } while (reply == REPLY_LATER && clock_ms() < until_ms &&
             job_stop_pause(&t->copies->stop, PAUSE_MS));
    if (reply == REPLY_LATER)
        log_debug("a write stays in doubt", lstr("name", name), lerr(&err));
    return reply == REPLY_MADE;
}
