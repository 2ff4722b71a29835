/* The keys that tokens, redirect proofs and signed URLs are made with: one of each for every line
 * of the cluster key's file, derived once.  Immutable, and shared by all threads.
 *
 *     token key       HKDF-SHA256(cluster key, "dfc-token-1")
 *     redirect key    HKDF-SHA256(cluster key, "dfc-redirect-1")
 *     url key         HKDF-SHA256(cluster key, "dfc-url-1")
 *
 * New proofs are made with the first line; proofs of every line are accepted.  So the cluster key
 * is changed without a pause, as sessions of nodes are (common/auth/cluster_key.h).
 *
 * A struct mac_key has the two halves of HMAC (RFC 2104) already fed with the key: a sum costs two
 * short digests, and no look-up of an algorithm. */
#pragma once

#include <stddef.h>

#include "common/auth/mac.h"
#include "common/auth/cluster_key.h"

struct mac_key;

/* Any thread. */
void mac_key_sum(const struct mac_key *k, const void *data, size_t len,
                 unsigned char out[static AUTH_MAC_BYTES]);

enum { PROOF_KEY_ID_BYTES = CLUSTER_KEY_ID_CHARS / 2 };

struct proof_key {
    unsigned char id[PROOF_KEY_ID_BYTES]; /* the cluster key's */
    struct mac_key *token, *redirect, *url;
};

struct proof_keys;

/* `keys` has at least one.  The caller has the first reference. */
struct proof_keys *proof_keys_new(const struct cluster_keys *keys);
struct proof_keys *proof_keys_ref(struct proof_keys *k);
void proof_keys_unref(struct proof_keys *k); /* NULL is fine */
/* The lines themselves, which seal secrets (seal.h). */
const struct cluster_keys *proof_keys_cluster(const struct proof_keys *k);
/* The key that new proofs are made with. */
const struct proof_key *proof_keys_own(const struct proof_keys *k);
/* NULL: no line has this id. */
const struct proof_key *proof_keys_find(const struct proof_keys *k, const unsigned char *id);
