/* Users and roles: the items of the document `access` (identity.h has its JSON form).  Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/access/grant.h"
#include "common/arena.h"
#include "common/error.h"

enum {
    USER_ID_CHARS = 32,    /* hex */
    USER_NAME_MAX = 63,    /* characters of a user's or a role's name */
    ACCESS_KEY_CHARS = 20, /* capital letters and digits */
    SECRET_CHARS = 40,
    SEALED_MAX = 256, /* characters of a sealed secret */
    PASSWORD_HASH_MAX = 256,
    USER_KEYS_MAX = 2, /* so that a key is changed without a pause */
    USER_ROLES_MAX = 16,
};

#define USER_ROOT "root" /* the first user, whom the primary makes and can give a new key */
#define USER_ANONYMOUS "anonymous"
#define USER_ANONYMOUS_ID "00000000000000000000000000000000"

enum user_kind { USER_PERSON, USER_SERVICE, USER_OF_NOBODY, USER_KINDS };

/* A second, on each node; 0: no limit. */
struct access_rate {
    uint64_t requests;
    uint64_t bytes;
};

struct access_key {
    const char *access;
    const char *secret; /* sealed */
    int64_t created_ms;
    int64_t expires_ms; /* 0: never */
};

struct user {
    const char *id;   /* never used twice; buckets know their owners by it */
    const char *name; /* [a-zA-Z0-9][a-zA-Z0-9_.@-]{0,62} */
    enum user_kind kind;
    bool enabled;
    size_t role_count;
    const char **roles; /* names of roles that exist */
    struct grants grants;
    size_t key_count;
    struct access_key keys[USER_KEYS_MAX];
    const char *password;    /* hash; "": none */
    int64_t tokens_after_ms; /* tokens issued before are refused */
    struct access_rate rate;
};

struct role {
    const char *name; /* as a user's; not of a built-in one */
    struct grants grants;
    struct access_rate rate;
};

const char *user_kind_name(enum user_kind kind);
int user_name_check(const char *name, struct error *err); /* of a role, too */
bool user_id_is_valid(const char *id);
bool access_key_is_valid(const char *access_key);
bool access_key_is_in_force(const struct access_key *k, int64_t now_ms); /* not expired */

/* What one user may have: `anonymous` has neither keys, a password nor roles, and only some rights;
 * a service has no password.  E_INVALID; `path`: for the message. */
int user_check(const struct user *u, const char *path, struct error *err);

void user_copy(const struct user *from, struct arena *a, struct user *to);
void role_copy(const struct role *from, struct arena *a, struct role *to);
bool user_equal(const struct user *a, const struct user *b);
/* The same roles and grants, in this order. */
bool user_same_rights(const struct user *a, const struct user *b);
bool role_equal(const struct role *a, const struct role *b);

/* Whose eyes a JSON form is for. */
enum access_view {
    ACCESS_WHOLE,  /* as nodes keep it */
    ACCESS_PUBLIC, /* without secrets and hashes of passwords */
};

json_t *user_to_json(const struct user *u, enum access_view view);
int user_from_json(json_t *doc, const char *path, struct arena *a, struct user *out,
                   struct error *err);
json_t *role_to_json(const struct role *r);
int role_from_json(json_t *doc, const char *path, struct arena *a, struct role *out,
                   struct error *err);
