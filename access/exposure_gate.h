/* The public listener of a node that asks for no proof.  It must not serve beside nodes that do:
 * the node hears from the primary whether the two agree (exposure_check_node()).
 *
 *   shut   the node begins with documents that have users, and no primary has taken it yet; or the
 *          primary refuses it, since one of the two asks for proof and the other does not; or it
 *          was elected itself, and documents that have users keep it from being the primary
 *   open   else
 *
 * While it is shut every call gets 503 not_ready, but for those that need no right (health). */
#pragma once

#include <stdbool.h>

#include "net/http/server.h"

struct exposure_gate;

struct exposure_gate *exposure_gate_new(const char *node, bool shut);
void exposure_gate_free(struct exposure_gate *g); /* after the servers; NULL is fine */
/* For http_server_config.guard; NULL for NULL. */
const struct http_guard *exposure_gate_hook(const struct exposure_gate *g);
/* The code of the primary's answer to a registration or a keepalive: 0 opens the gate, E_NODE_STATE
 * shuts it, others change nothing.  Any thread; NULL is a node that asks for proof. */
void exposure_gate_hear(struct exposure_gate *g, int code);
