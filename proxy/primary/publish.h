/* The pusher (proxy/push/push.h) in a proxy's control loop: states go out as PUT
 * /v1/cluster/state to the nodes' control addresses.  All in the control loop's thread, but for
 * the texts, which a thread of p->push_pool makes (proxy/push/push_text.h). */
#pragma once

#include "cluster/documents/state.h"
#include "proxy/metastore/settle_scope.h"

struct proxy;
struct publisher;

/* `before`: the state that the last primary has left to the nodes, or NULL. */
struct publisher *publisher_start(struct proxy *p, const struct cluster_state *before);
void publisher_close(struct publisher *pub); /* sends no more */
void publisher_stop(struct publisher *pub);  /* after the client has ended its calls */
void publisher_state_changed(struct publisher *pub);
/* The length of the whole state, as it was at most a second ago while changes follow one another.
 */
size_t publisher_bytes(const struct publisher *pub);
/* fn(arg) once every active node of the scope has this state, or settle_timeout has passed. */
void publisher_settle(struct publisher *pub, const struct cluster_state *s, enum settle_scope scope,
                      void (*fn)(void *arg), void *arg);
