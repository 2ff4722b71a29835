/* The first user of a cluster with access control: `root`, who may do everything.
 *
 * The primary makes it when the cluster has no user yet.  Its access key and secret are written to
 * DIR/root.json (mode 0600) before the user is made, so that a user always has a key that somebody
 * can read.  The log names the file, never the secret. */
#pragma once

#include "common/error.h"

struct proxy;

/* Does nothing without access control, and where there are users.  Not in a loop's thread. */
int root_make(struct proxy *p, struct error *err);
/* The same later, in the overhaul thread, at a proxy that was elected; the log has the outcome.
 * Any thread. */
void root_soon(struct proxy *p);
