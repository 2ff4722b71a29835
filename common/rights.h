/* The rights of access control: rows of rights.def.  A route asks for one, a grant gives some.
 *
 * A set of rights is a mask with a bit right_bit(r) for each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum right {
    RIGHT_UNSET,     /* no route has this */
    RIGHT_NONE,      /* anybody may call, without proof: health, login */
    RIGHT_NODE,      /* only nodes call: no public listener has the route */
    RIGHT_OPERATION, /* the right of the S3 operation, which the handler asks for (gateway/) */
    RIGHT_ANY,       /* any user who proves an identity; the handler asks for what else is needed */
#define RIGHT(name, scope, text, meaning) RIGHT_##name,
#include "common/rights.def"
#undef RIGHT
    RIGHTS,
};

enum right_scope { RIGHT_SCOPE_BUCKET, RIGHT_SCOPE_CLUSTER };

static inline uint32_t right_bit(enum right r)
{
    return (uint32_t)1 << r;
}

const char *right_name(enum right r);    /* "read"; "none", "node", "any" */
const char *right_meaning(enum right r); /* a phrase for help and documents */
bool right_is_of_cluster(enum right r);
/* RIGHT_UNSET: no right of this scope has this name. */
enum right right_parse(enum right_scope scope, const char *name);
/* "list, read, write, …": those of a scope, for messages; malloc'ed. */
char *right_names(enum right_scope scope);
