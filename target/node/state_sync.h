/* Taking in the cluster's documents: each that is newer than what this node holds is checked,
 * written to the mountpaths (as far as they have room), put in force, and told to who must act on
 * it.
 *
 * Any thread that may wait for the disk; they take turns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cluster/documents/push_body.h"
#include "cluster/documents/state.h"
#include "cluster/documents/state_holder.h"
#include "target/disk/mountpaths.h"

struct state_sync;

struct state_sync_hooks {
    void *ctx;
    /* A newer state is in force.  In the thread that brought it, one call at a time. */
    void (*changed)(void *ctx, const struct cluster_state *s);
};

/* Begins with what the mountpaths have, or with an empty state: state_sync_has_state() is false
 * then. *holder is this module's. */
int state_sync_new(struct mountpaths *m, const char *target_id,
                   const struct state_sync_hooks *hooks, struct state_sync **out,
                   struct state_holder **holder, struct error *err);
void state_sync_free(struct state_sync *k);

/* E_WRONG_CLUSTER; an older state, or the same, is no error and changes nothing. */
int state_sync_take(struct state_sync *k, const struct cluster_state *s, struct error *err);
/* The same, from text: what registering gave. */
int state_sync_take_json(struct state_sync *k, const char *text, size_t len, struct error *err);
/* The same of a state that came otherwise: one that has none yet is to be let in first, and takes
 * nothing. */
int state_sync_renew_json(struct state_sync *k, const char *text, size_t len, struct error *err);
/* The same of a push, which may be a difference (cluster/documents/push_body.h).  A difference from
 * another state than the present one is no error and changes nothing. */
int state_sync_take_push(struct state_sync *k, const char *text, size_t len, struct error *err);
struct push_reply state_sync_reply(struct state_sync *k); /* the reply to a push */

/* Tells of the state in force once more: something else has changed that it is to be acted on with,
 * such as the mountpaths.  Nothing where none has come since this node began. */
void state_sync_tell_again(struct state_sync *k);

/* From here on nobody is told; who is told just now has been when this returns. */
void state_sync_quiet(struct state_sync *k);

bool state_sync_has_state(struct state_sync *k);
/* The first state that this node saw with the present map and buckets: whoever knows it, or a later
 * one, places objects as this node does. */
void state_sync_placement(struct state_sync *k, uint64_t *term, uint64_t *version);
/* The same of what its answers are taken for: who knows less of the owners, or of what this target
 * has lost, is to look again (owners_are_news()). */
void state_sync_owners(struct state_sync *k, uint64_t *term, uint64_t *version);
