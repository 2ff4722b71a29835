/* Who may call a node's public listener, as its parameters say.  Pure.
 *
 *   mode          parameters          public listener
 *   loopback      none                everybody on this machine may do everything
 *   anonymous     --anonymous=all     everybody who reaches it may do everything
 *   auth          --public-auth       what the grants of the document `access` allow (guard.h)
 *
 * A node without one of the two parameters does not start on an address that others reach.  A
 * cluster with users is locked: no primary without --public-auth begins in it, and users are made
 * with --public-auth alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum exposure { EXPOSURE_LOOPBACK, EXPOSURE_ANONYMOUS, EXPOSURE_AUTH, EXPOSURES };

struct exposure_params {
    const char *address;  /* of the public listener */
    const char *key_file; /* the cluster key's, or "" */
    bool public_auth;
    const char *anonymous; /* "" or "all" */
    uint64_t admin_port;   /* 0: none */
};

/* E_INVALID: what to add or to take away. */
int exposure_of(const struct exposure_params *p, enum exposure *out, struct error *err);
/* "loopback", "anonymous", "auth": in a node's registration. */
const char *exposure_name(enum exposure e);
/* A proxy becomes the primary of a cluster: with users it asks for proof.
 * E_NODE_STATE says how to start it, or to open the cluster. */
int exposure_check_users(enum exposure ours, const char *node, size_t users, struct error *err);
/* A node registers at the primary: both ask for proof, or neither.  `theirs` "": a release that
 * does not say, and asks for none.  E_NODE_STATE. */
int exposure_check_node(enum exposure ours, const char *node, const char *theirs,
                        struct error *err);
