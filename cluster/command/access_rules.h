/* Which user may change which user, role or key.  Pure.
 *
 * An actor is the id of the user who asks; NULL is an operator who has proven the cluster key, or
 * the primary itself, and may do everything.  Else:
 *
 *   - the actor needs the right `users`; a user's own keys and password need nothing
 *   - only a user with `admin` changes a user who has it
 *   - nobody gives rights that the actor does not have: not by grants, roles or keys, and not to a
 *     disabled user
 *
 * E_ACCESS_DENIED says which of these forbids it. */
#pragma once

#include "common/error.h"

struct cluster_state;
struct role;
struct user;

/* `before` NULL: a new user.  `after` NULL: a removal, or a change that only takes rights away. */
int access_may_change(const struct cluster_state *s, const char *actor, const struct user *before,
                      const struct user *after, struct error *err);
/* Whoever sets a key or password can act as the user. */
int access_may_act_as(const struct cluster_state *s, const char *actor, const struct user *user,
                      struct error *err);
int access_may_change_role(const struct cluster_state *s, const char *actor,
                           const struct role *before, const struct role *after, struct error *err);
