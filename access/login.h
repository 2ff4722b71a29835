/* Login with an access key: a client proves that it has the secret, and gets a token.
 *
 *   {"access": "DFC4J…", "time_ms": 1764000000000, "nonce": "9f0c…", "proof": "…"}
 *
 * The proof is common/auth/login_proof.h's.  It is good for LOGIN_WINDOW_MS around its time and, at
 * one proxy, once.  What is wrong with a login is not told: an access key that does not exist is
 * refused as a wrong proof is. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "access/proof_keys.h"
#include "cluster/access/identity.h"
#include "common/error.h"

enum { LOGIN_WINDOW_MS = 5 * 60 * 1000, LOGIN_NONCE_MIN = 16, LOGIN_NONCE_MAX = 64 };

struct login;

struct login *login_new(void);
void login_free(struct login *l);

/* Any thread.  *out is the document's.  E_JSON, E_UNAUTHORIZED; E_RATE_LIMITED: too many with this
 * access key. */
int login_by_key(struct login *l, const struct proof_keys *keys, const struct access *doc,
                 json_t *body, int64_t now_ms, const struct key_owner **out, struct error *err);
