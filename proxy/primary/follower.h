/* A follower's part in the cluster: it registers at the primary, keeps alive, and fetches the state
 * when the primary has a newer one that no push has brought.  One call at a time, made by a timer
 * in the control loop.
 *
 * One that may be elected has it too, closed while it is the primary; then it only keeps the state
 * on disk. */
#pragma once

#include "cluster/documents/state.h"

struct proxy;
struct follower;

/* In the control loop's thread. */
struct follower *follower_start(struct proxy *p);
/* It is not kept alive any more; what is pushed is still taken. */
void follower_quiet(struct follower *f);
void follower_close(struct follower *f); /* asks no more … */
void follower_open(struct follower *f);  /* … until now */
void follower_stop(struct follower *f);  /* after the client has ended its calls */
/* p->state has changed: it is on disk a second later, the first one at once. */
void follower_state_changed(struct follower *f);
/* Takes a state that has come, by a push or otherwise: put into p->state where it is newer, and
 * kept on disk a second later.  E_WRONG_CLUSTER, E_STALE_MAP.  In the control loop's thread. */
int follower_take(struct follower *f, const struct cluster_state *s, struct error *err);
