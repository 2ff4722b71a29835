/* The first user of a cluster with access control: `root`, who may do everything.
 *
 *   the primary begins, and …            root gets
 *   the cluster has no user yet          the key of --root-key-file, or a new one
 *   --reset-root, once in a process      the same, in place of all its keys: the way back for an
 *                                        operator who has lost them (CMD_ROOT_KEY)
 *   else                                 nothing; the log tells where the file has another key
 *
 * A new key is written to DIR/root.json (mode 0600) before root gets it, so that a user always has
 * a key that somebody can read; a key of the file removes an earlier root.json.  The logs name file
 * and access key, never the secret. */
#pragma once

#include "common/error.h"

struct proxy;
struct proxy_params;

/* Before the start: the file can be read, and the parameters go together.  E_INVALID. */
int root_params_check(const struct proxy_params *params, struct error *err);
/* Does nothing without access control.  Not in a loop's thread. */
int root_settle(struct proxy *p, struct error *err);
/* The same later, in the overhaul thread, at a proxy that was elected; the log has the outcome.
 * Any thread. */
void root_soon(struct proxy *p);
