/* A target is to leave, for a while or for good: it is asked what it has, and the others must have
 * room for that (proxy/primary/room.h) before the map is changed.  Any thread; the primary's. */
#pragma once

#include "cluster/command/command.h"

struct http_request;
struct proxy;

/* Does this command take objects from a target that has to move them off? */
bool leave_moves(const struct cluster_state *s, const struct command *cmd);
/* Commits `cmd`, by which `n` leaves, or answers `req` with why not.  `done` as for
 * proxy_commit_settled(), with req. */
void leave_begin(struct proxy *p, struct http_request *req, const struct node *n,
                 const struct command *cmd, void (*done)(void *arg, const struct error *err));
