/* Proof of membership on the intra-cluster networks.
 *
 *     caller                                        called
 *       │  POST /v1/intra/session: who ────────────────▶ │
 *       │ ◀── node, challenge                            │  a challenge that is taken once
 *       │  POST: who, challenge, nonce, proof ─────────▶ │  knows the key: a member, or a
 *       │                                                │  repetition
 *       │ ◀── session, who, nonce, proof                 │
 *       │  key of the session, from the cluster's key    │  the same key
 *       │  and both nonces                               │
 *       │  Dfc-Auth: 1 session counter digest mac ─────▶ │  the session is open, the counter new
 *
 * The cluster's key (cluster_key.h) never goes over the wire, no clock is asked, and what was
 * overheard proves nothing: a greeting gives a session whose key only a member can compute, a
 * request has a counter that is taken once.  A session lasts until one of the two processes ends; a
 * caller whose session is not known (any more) opens another by itself (http_client.c).
 *
 * The proof of a greeting is over the other side's node and its challenge (auth_challenges.h): a
 * greeting is good for one session, at one process.  Nodes of the release before this one know no
 * challenges.  To their refusal (E_JSON) a caller answers with a greeting of the earlier form, and
 * a node takes that form from callers; the sessions that it opens have a room of their own
 * (auth_sessions.h).  The next release takes it no longer.
 *
 * The answer to a greeting proves which node gives it.  A caller compares that node with the one
 * that the call is for (http_call.node), not with the address: packets may be carried elsewhere,
 * and a new node may serve where a dead one did.  A call that looks for the primary, or for the
 * map, takes any node of the cluster.
 *
 * One struct auth for each daemon: its servers ask it (gate.c), its clients sign with it
 * (http_session.c), so that a new call between nodes is signed, and a new route is closed, without
 * a line of its own.  Without a key file nothing is signed and nothing is asked for; daemons then
 * listen on loopback only (auth_check_address).
 *
 * Besides, every call between nodes says which documents its sender has (struct auth_stamp):
 *
 *     Dfc-State: cluster term.version
 *
 * The gate refuses another cluster's, key or no key, where the call does not look at that itself
 * (http_route.any_cluster), and of an order that only a primary gives (http_route.fenced) one whose
 * term is over. */
#pragma once

#include "common/auth/caller.h"
#include "common/error.h"
#include "net/auth/sessions.h"

struct auth;

/* What a node has seen of the cluster. */
struct auth_stamp {
    char cluster[AUTH_NAME_MAX]; /* "": nothing yet */
    uint64_t term, version;
};

struct auth_config {
    const char *key_file; /* or "" */
    const char *node;
    const char *boot;
    void (*stamp)(void *ctx, struct auth_stamp *out); /* any thread; or NULL: "" */
    void *ctx;
};

/* E_INVALID: the key file. */
int auth_new(const struct auth_config *config, struct auth **out, struct error *err);
void auth_free(struct auth *a); /* after the servers and clients */
bool auth_has_key(const struct auth *a);
/* A numeric loopback address. */
bool auth_is_loopback(const char *address);
/* Reads the key file anew (SIGHUP): new keys count at once, and where one is gone all sessions that
 * others have opened end; members open new ones by themselves.  After an error, and without a key
 * at the start, all stays as it is. */
int auth_reload(struct auth *a, const char *key_file, bool *changed, struct error *err);
/* E_INVALID where a node without a key would listen on an address that others reach. */
int auth_check_address(const char *key_file, const char *address, struct error *err);
void auth_stamp(const struct auth *a, struct auth_stamp *out);

/* --- opening a session ------------------------------------------------------------------------ */

/* The JSON of the question for a challenge, whose answer auth_caller_challenged() takes; malloc'ed.
 */
char *auth_ask(struct auth *a, struct auth_opening *o);
/* The JSON of a greeting; malloc'ed. */
char *auth_greet(struct auth *a, struct auth_opening *o);
/* The called side: gives a challenge to a question; takes a greeting and remembers the session
 * (`opened`).  The answer's JSON is malloc'ed.  E_UNAUTHORIZED, E_JSON; E_UNSUPPORTED without a
 * key.
 */
int auth_answer(struct auth *a, const char *text, size_t len, char **answer, bool *opened,
                struct error *err);
/* The caller takes the answer: the session's id (hex) and key, and in o->node whose session it is.
 * E_UNAUTHORIZED where the other side has no proof, E_JSON. */
int auth_opened(struct auth *a, struct auth_opening *o, const char *answer, size_t len,
                char id[2 * AUTH_SESSION_BYTES + 1], unsigned char key[AUTH_MAC_BYTES],
                struct error *err);

/* --- requests --------------------------------------------------------------------------------- */

enum auth_verdict {
    AUTH_PROVEN,
    AUTH_NO_CLAIM,   /* the header is missing, or is none */
    AUTH_NO_SESSION, /* open one, and ask again */
    AUTH_BAD_MAC,
    AUTH_REPLAYED, /* or too late */
};

/* The word that a refusal carries in WWW-Authenticate. */
const char *auth_verdict_word(enum auth_verdict v);
/* `text`: the request's lines, as its receiver sees them (common/auth/mac.h).  Any thread. */
enum auth_verdict auth_check(struct auth *a, const struct auth_claim *c, const struct buf *text);
