/* The document `access`: users, their keys, roles and grants.  Pure; fuzzed.
 *
 *   {"version": 4,
 *    "users": [{"id": "9f0c…", "name": "trainer", "kind": "service", "enabled": true,
 *               "roles": ["reader"], "grants": [ … cluster/access/grant.h … ],
 *               "keys": [{"access": "DFC4J…", "secret": "SEALED", "created_ms": 1,
 *                         "expires_ms": 0}],
 *               "password": "scrypt:15:8:1:SALT:HASH", "tokens_after_ms": 0,
 *               "rate": {"requests": 0, "bytes": 0}}],
 *    "roles": [{"name": "lab", "grants": [ … ], "rate": {…}}]}
 *
 * Fields that are empty or 0 are left out of the JSON form.
 *
 * A cluster has the document from its first user or role on: `version` 0 means that it never had
 * one.  Secrets are sealed under the cluster key (access/seal.h), passwords are hashed
 * (access/password.h); this module takes both as texts.
 *
 * `anonymous` is a user of its own kind: everybody who proves nothing.  It has no keys, password or
 * roles, and its grants give at most `list`, `read` and `write`.
 *
 * The structs are the snapshot's (cluster/state.h): they never change, and live as long as it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/access/user.h"
#include "cluster/base/document.h"
#include "common/error.h"

enum {
    USERS_MAX = 10000,
    ROLES_MAX = 64,
};

/* An access key and whose it is. */
struct key_owner {
    const char *access;
    const struct user *user;
    const struct access_key *key;
};

struct access {
    uint64_t version;
    size_t user_count;
    struct user *users; /* sorted by name */
    size_t role_count;
    struct role *roles; /* sorted by name */
    /* Made from users: sorted by id, and by access key. */
    const struct user **by_id;
    size_t key_count;
    struct key_owner *by_key;
    struct document *memory;
};

/* Lookups take a few comparisons; NULL: there is none. */
const struct user *access_user(const struct access *a, const char *name);
const struct user *access_user_by_id(const struct access *a, const char *id);
const struct key_owner *access_key_owner(const struct access *a, const char *access_key);
const struct role *access_role(const struct access *a, const char *name);
/* The grants of a role, built in or not; NULL: there is none. */
const struct grants *access_role_grants(const struct access *a, const char *name);
/* The least of the user's rate and of the roles'. */
struct access_rate access_rate_of(const struct access *a, const struct user *u);
/* Has an enabled or disabled user the right `admin` on the cluster? */
bool access_is_admin(const struct access *a, const struct user *u);

/* For commands: a new document, with version + 1, that differs in some users or one role; the
 * caller owns it.  x_with() replaces the item of its name. */
/* access_changed() does it for many items; it returns a dropped name that `old` does not have, or
 * NULL. */
const char *access_changed(const struct access *old, const struct document_change *users,
                           const struct document_change *roles, struct access *next);
void access_with_user(const struct access *old, const struct user *u, struct access *next);
/* `users` are sorted by name, and no name is there twice. */
void access_with_users(const struct access *old, const struct user *users, size_t count,
                       struct access *next);
void access_without_user(const struct access *old, const char *name, struct access *next);
void access_with_role(const struct access *old, const struct role *r, struct access *next);
void access_without_role(const struct access *old, const char *name, struct access *next);

/* What must hold across users: a role that does not exist (E_ROLE_NOT_FOUND), an id or an access
 * key that is there twice (E_INVALID).  state_check() asks it of whatever comes from outside. */
int access_check(const struct access *a, struct error *err);
json_t *access_to_json(const struct access *a, enum access_view view);
/* E_JSON, E_INVALID: also for names that are there twice and for anything beyond its bound.  After
 * an error the caller owns out->memory, too. */
int access_from_json(json_t *doc, struct access *out, struct error *err);
