/* May this identity do this?  Pure: from the documents that the node has.
 *
 *   1. the right is RIGHT_NONE: yes.  RIGHT_ANY: yes for everybody but `anonymous`
 *   2. the user is disabled: no
 *   3. the user owns the bucket: yes, for rights on the bucket and its keys
 *   4. a grant of the user, then of one of the roles, gives it: yes
 *   5. no
 *
 * The right `admin` on the cluster includes all other rights.  That of a bucket is of the bucket as
 * a whole, whatever key is asked about: a grant with a prefix does not give it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cluster/access/identity.h"
#include "common/rights.h"

/* What is asked.  A question about the cluster has no bucket. */
struct access_question {
    enum right right;
    const char *bucket; /* its name; NULL: the cluster */
    const char *owner;  /* user id of the bucket's owner (bucket.owner); NULL or "": none */
    /* The key, unescaped; of a list the prefix that it asks for.  NULL: is there any key of the
     * bucket on which the user has the right? */
    const char *key;
    size_t key_len;
};

enum access_rule {
    RULE_OPEN,     /* the call needs no right */
    RULE_DISABLED, /* the user is */
    RULE_OWNER,
    RULE_GRANT,
    RULE_ROLE, /* a grant of a role */
    RULE_DENIED,
};

struct access_decision {
    bool allowed;
    enum access_rule rule;
    const char *role;          /* with RULE_ROLE */
    const struct grant *grant; /* with RULE_GRANT and RULE_ROLE; lives as long as the document */
};

/* `user` NULL: `anonymous`. */
struct access_decision access_decide(const struct access *doc, const struct user *user,
                                     const struct access_question *q);

enum { ACCESS_RULE_CHARS = 160 };
/* "owner", "grant 0", "role reader": for the audit log and `explain`. */
const char *access_rule_text(const struct access_decision *d, char text[static ACCESS_RULE_CHARS]);
/* E_ACCESS_DENIED with the right and the place: "user 'x' lacks the right 'write' on 'b/o'". */
int access_deny(const struct user *user, const struct access_question *q, struct error *err);
