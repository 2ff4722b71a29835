/* Calls that administer: at the client's control endpoints, signed with the cluster's key
 * (signed.h); or with its login at public listeners; else at control listeners, signed.
 *
 *     control endpoints: a call of a node  --> GET /v1/cluster, there --> its control address
 *                        any other         --> a control endpoint
 *     a login: a call of a node  --> GET /v1/cluster --> GET /v1/daemon at that node's public
 *                                     address --> its admin address, if it has one, or there
 *              any other         --> an endpoint
 *     none:    GET /v1/cluster, at an endpoint --> the control address of the node, or of all
 *                                                  proxies, the primary's first
 *                                              --> the call itself */
#pragma once

#include "api/call.h"

/* A node's public address as the cluster knows it; malloc'ed. */
int node_public_origin(struct dfc_client *c, const char *node, char **origin,
                       struct dfc_error *err);

/* As call_small() without origins.  node: the one to ask; NULL: any proxy, which passes on what is
 * the primary's. */
int admin_call(struct dfc_client *c, const struct call_small *what, const char *node,
               struct buf *path, char **text, struct dfc_error *err);
/* With the cluster's key in any case: what public listeners do not tell. */
int control_call(struct dfc_client *c, const struct call_small *what, const char *node,
                 struct buf *path, char **text, struct dfc_error *err);
/* What public listeners show, too: at a control listener if the client has control endpoints, else
 * at an endpoint or the node's public address. */
int show_call(struct dfc_client *c, const char *node, struct buf *path, char **text,
              struct dfc_error *err);
