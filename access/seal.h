/* Secrets of users, sealed under the cluster key: SigV4 and login need the secret itself.  Pure,
 * but for the randomness; any thread.
 *
 *   KEYID:NONCE:BYTES     16 hex digits, 24 hex digits, hex of AES-256-GCM(secret) with its tag
 *
 * The sealing key is HKDF-SHA256(cluster key, "dfc-access-1").  User id and access key are
 * associated data, so that a sealed secret cannot be moved to another user or key.  KEYID names the
 * cluster key: while the key file has two keys, secrets of both are opened. */
#pragma once

#include <stdbool.h>

#include "cluster/access/identity.h"
#include "common/auth/cluster_key.h"
#include "common/error.h"

/* A new pair of getrandom(2). */
void secret_new(char access_key[static ACCESS_KEY_CHARS + 1], char secret[static SECRET_CHARS + 1]);
void user_id_new(char id[static USER_ID_CHARS + 1]);

/* With the first key of `keys`.  E_INVALID: there is none, or the secret is too long. */
int seal_secret(const struct cluster_keys *keys, const char *user_id, const char *access_key,
                const char *secret, char sealed[static SEALED_MAX], struct error *err);
/* E_CORRUPT: not sealed by one of these keys, or for another user or access key, or damaged. */
int seal_open(const struct cluster_keys *keys, const char *user_id, const char *access_key,
              const char *sealed, char secret[static SECRET_CHARS + 1], struct error *err);
/* Was it sealed with the first of the keys? */
bool seal_is_current(const struct cluster_keys *keys, const char *sealed);
/* Of HKDF-SHA256(cluster key, info), for other uses of the cluster key ("dfc-token-1"). */
void seal_derive(const struct cluster_key *key, const char *info,
                 unsigned char out[static CLUSTER_SECRET_BYTES]);
