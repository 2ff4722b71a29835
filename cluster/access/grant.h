/* Grants: which rights, on which buckets, on which keys.  Pure.
 *
 *   {"rights": ["list", "read"], "bucket": "train-*", "prefix": "imagenet/"}   keys of buckets
 *   {"rights": ["see", "jobs"]}                                                the cluster
 *
 * A pattern has the characters of a bucket's name, `*` (any text) and `?` (any character).  A
 * prefix holds for the keys that begin with it; "" is all keys.
 *
 * Four roles are built in and cannot be changed: `admin`, `operator`, `reader` and `writer`. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/error.h"
#include "common/rights.h"

enum { GRANTS_MAX = 64 }; /* of a user or a role */

struct grant {
    uint32_t rights;    /* right_bit() of each; all of one scope, and at least one */
    const char *bucket; /* a pattern; NULL: a grant on the cluster */
    const char *prefix; /* of keys; "" on the cluster */
    size_t prefix_len;
};

struct grants {
    size_t count;
    struct grant *items;
};

struct builtin_role {
    const char *name;
    struct grants grants;
};

/* NULL: no role of this name is built in. */
const struct builtin_role *builtin_role_find(const char *name);
const struct builtin_role *builtin_role_at(size_t index); /* NULL ends the list */

/* Does `pattern` match all names that `other` (a name, or a pattern, too) matches?  It may say no
 * where the answer is yes, and never the other way round. */
bool pattern_covers(const char *pattern, const char *other);
/* Does the grant give this right on this key of this bucket?  `bucket` NULL: on the cluster.
 * `key` NULL: on some key of the bucket.  A prefix that a list asks for is judged as a key is. */
bool grant_gives(const struct grant *g, enum right right, const char *bucket, const char *key,
                 size_t key_len);
/* Every right that `other` gives, one of `held` gives, too. */
bool grants_cover(const struct grants *held, const struct grant *other);
bool grant_equal(const struct grant *a, const struct grant *b);
bool grants_equal(const struct grants *a, const struct grants *b); /* in this order */
void grants_copy(const struct grants *from, struct arena *a, struct grants *out);

json_t *grant_to_json(const struct grant *g);
/* `path`: for messages.  E_JSON, E_INVALID: an unknown right, rights of both scopes, a pattern or a
 * prefix that no bucket or key can have. */
int grant_from_json(json_t *doc, const char *path, struct arena *a, struct grant *out,
                    struct error *err);
json_t *grants_to_json(const struct grants *g);
/* Of field "grants" of `doc`; none where it is missing.  E_INVALID also for more than GRANTS_MAX,
 * and for one that is there twice. */
int grants_from_json(json_t *doc, const char *path, struct arena *a, struct grants *out,
                     struct error *err);
