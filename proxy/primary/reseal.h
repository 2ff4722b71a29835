/* The secrets of users follow the cluster key: after a change of its first line they are sealed
 * anew under it.  The primary does that by itself, when its term begins and after SIGHUP; an
 * operator may ask for it (proxy/http/reseal.h). */
#pragma once

#include <jansson.h>

#include "common/auth/cluster_key.h"
#include "common/error.h"

struct cluster_state;
struct proxy;

/* The keys that seal: those in force, or without access control those of the key's file.  The
 * caller cleanses them.  E_UNSUPPORTED: the proxy has none. */
int sealing_keys(const struct proxy *p, struct cluster_keys *out, struct error *err);

struct reseal_tally {
    json_int_t resealed;
    json_int_t unreadable; /* sealed under a key that this proxy does not have */
};

/* At the primary; waits for its commits, so not in the control loop. */
int reseal_all(struct proxy *p, struct reseal_tally *t, struct error *err);
/* At the primary: the same later, in the overhaul thread; the log has the outcome.  Elsewhere, and
 * without access control: nothing.  Any thread. */
void reseal_soon(struct proxy *p);
/* Secrets of these documents that another line has sealed; 0 without access control. */
json_int_t reseal_left(const struct proxy *p, const struct cluster_state *s);
