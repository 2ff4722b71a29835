/* Who asks, and may they: the one place at which a public route is opened, as net/http/gate.h is
 * for calls between nodes.
 *
 *   request ─▶ proof ─▶ user ─▶ access_decide() for the route's right ─▶ the handler
 *                │        │           │
 *                │        │           ├ 429: more often than the user's rate allows (rates.h)
 *                │        │           └ 401 anonymous, 403 access_denied: what right is missing
 *                │        └ 401: gone, disabled, or the token was withdrawn (with its access key)
 *                └ 401: the token or the redirect proof is invalid or expired
 *
 *   proof                          where                    identity
 *   Authorization: Bearer dfc1.…   every node               the token's user
 *   dfca=… in the query            calls that take dfca     the user whom a proxy has let in
 *   dfcu=… in the query            calls that take dfcu     the user who has asked for the URL
 *   an AWS signature               S3 requests              the user whose access key it is
 *   none                                                    anonymous
 *
 * Where a call has several, a valid redirect proof counts, else the token, else the signed URL.
 *
 * Each node decides alone, from the documents that it has.  The decision is about names: a bucket
 * that the caller may not list is refused alike whether it exists or not.  Parameters and body are
 * judged afterwards.
 *
 * What a route's right does not say (the buckets that a job names, the new name of a rename, the
 * rows of a list) its handler asks with guard_ask() and guard_sees().  Without access control there
 * is no guard, and both say yes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "access/decide.h"
#include "access/token.h"
#include "common/buf.h"
#include "common/error.h"
#include "common/rights.h"
#include "net/http/server.h"

struct guard;
struct state_holder;
struct user;
struct proof_keys;
struct redirect_call;

struct guard_config {
    const char *key_file; /* the cluster key's */
    struct state_holder *state;
    uint64_t redirect_ttl_ms;
};

/* E_INVALID: the key file. */
int guard_new(const struct guard_config *config, struct guard **out, struct error *err);
void guard_free(struct guard *g); /* after the servers; NULL is fine */
/* For http_server_config.guard; NULL for NULL. */
const struct http_guard *guard_hook(const struct guard *g);
/* Reads the key file anew (SIGHUP).  After an error all stays as it is. */
int guard_reload(struct guard *g, const char *key_file, struct error *err);
/* The keys in force; a reference. */
struct proof_keys *guard_keys(struct guard *g);

/* --- for handlers, in the thread that handles the request ------------------------------------- */

/* Whose request it is; NULL: anonymous, or there is no access control.  Lives as long as the
 * request. */
const struct user *guard_user(const struct http_request *req);
/* May the caller do this, too?  `bucket` NULL: on the cluster; `key` NULL: on some key of the
 * bucket.  0, E_UNAUTHORIZED (anonymous) or E_ACCESS_DENIED. */
int guard_ask(struct http_request *req, enum right right, const char *bucket, const char *key,
              struct error *err);
/* May the caller list the bucket, or some prefix of it? */
bool guard_sees(const struct http_request *req, const char *bucket);
/* Appends "&dfca=…" to a URL with a query, so that a target believes what was decided here; a proof
 * that the caller came with is passed on.  `new_name`: of a rename, which "&dfcn=…" tells; else
 * NULL.  Nothing for an anonymous caller, whose rights the target looks up. */
void guard_put_proof(const struct http_request *req, uint64_t bucket_id, const char *new_name,
                     struct buf *url);
/* The same for a call that this node makes for the caller: the proof is always new, since the body
 * that came with the caller's may have taken longer than that lasts. */
void guard_put_own_proof(const struct http_request *req, uint64_t bucket_id, struct buf *url);
/* The same for a call that the request does not look like: an S3 request is carried out by another
 * one. */
void guard_put_call_proof(const struct http_request *req, const struct redirect_call *call,
                          struct buf *url);
/* Is it the call of a signed URL?  A node that it is streamed to then needs a redirect's proof. */
bool guard_has_url(const struct http_request *req);
/* Appends the proof of a signed URL for the call, in the name of the caller, who is a user.
 * Whether the caller may do it was asked. */
void guard_put_url_proof(const struct http_request *req, const struct redirect_call *call,
                         uint64_t life_ms, uint64_t *expires_ms, struct buf *url);
/* May the object be renamed so?  Whoever has it under its new name can read it there, so that the
 * right to read it under the old one is asked, too.  A redirect proof is for one new name. */
int guard_ask_new_name(struct http_request *req, const char *bucket, const char *new_name,
                       struct error *err);

/* --- S3 requests: gateway/ checks the signature, the guard all else --------------------------- */

/* The sealed secret of the access key, which lives as long as the request.  NULL: no user has the
 * key, the user is disabled, or the key has expired. */
const char *guard_find_key(const struct http_request *req, const char *access_key);
/* Opens the secret of a key that guard_find_key() has found.  E_CORRUPT. */
int guard_secret(const struct http_request *req, const char *access_key,
                 char secret[static SECRET_CHARS + 1], struct error *err);
/* The request is signed with such a key: its user is the caller. */
void guard_set_key(struct http_request *req, const char *access_key);
/* Decides by the newest state from here on; the caller is nobody until guard_set_key(). */
void guard_renew(struct http_request *req);
/* May the caller make this request now?  As guard_ask(); E_RATE_LIMITED. */
int guard_open(struct http_request *req, enum right right, const char *bucket, const char *key,
               struct error *err);

/* Of a login: the access key or the person that it is for, which the audit log then tells whether
 * it fails or not.  Never a text that may be a secret in the wrong field. */
void guard_note_login(struct http_request *req, const char *claimed);

/* What the guard found out about a request, for the audit log. */
struct guard_account {
    const char *via;                   /* "token", "proof", "url", "anonymous"; NULL: no guard */
    const char *key;                   /* which token or signed URL, or what a login claims; "" */
    const char *rule;                  /* the last that decided, or NULL; … */
    char rule_text[ACCESS_RULE_CHARS]; /* … here */
};
/* At the end of the request, before its hooks. */
void guard_account(const struct http_request *req, struct guard_account *out);
