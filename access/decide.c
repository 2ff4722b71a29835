#include "access/decide.h"

#include <stdio.h>
#include <string.h>

static const struct grant *find_grant(const struct grants *g, const struct access_question *q)
{
    for (size_t i = 0; i < g->count; i++) {
        if (grant_gives(&g->items[i], q->right, q->bucket, q->key, q->key_len))
            return &g->items[i];
    }
    return NULL;
}

static struct access_decision by_roles(const struct access *doc, const struct user *user,
                                       const struct access_question *q)
{
    for (size_t i = 0; i < user->role_count; i++) {
        const struct grants *g = access_role_grants(doc, user->roles[i]);
        const struct grant *grant = g != NULL ? find_grant(g, q) : NULL;
        if (grant != NULL)
            return (struct access_decision){true, RULE_ROLE, user->roles[i], grant};
    }
    return (struct access_decision){.rule = RULE_DENIED};
}

static bool owns(const struct user *user, const struct access_question *q)
{
    return user->kind != USER_OF_NOBODY && !right_is_of_cluster(q->right) && q->owner != NULL &&
           strcmp(q->owner, user->id) == 0;
}

static struct access_decision by_grants(const struct access *doc, const struct user *user,
                                        const struct access_question *q)
{
    struct access_question whole = *q;
    if (q->right == RIGHT_ADMIN) {
        whole.key = "";
        whole.key_len = 0;
    }
    const struct grant *grant = find_grant(&user->grants, &whole);
    if (grant != NULL)
        return (struct access_decision){true, RULE_GRANT, NULL, grant};
    return by_roles(doc, user, &whole);
}

struct access_decision access_decide(const struct access *doc, const struct user *user,
                                     const struct access_question *q)
{
    if (user == NULL)
        user = access_user(doc, USER_ANONYMOUS);
    if (q->right == RIGHT_NONE)
        return (struct access_decision){true, RULE_OPEN, NULL, NULL};
    if (user == NULL)
        return (struct access_decision){.rule = RULE_DENIED};
    if (!user->enabled)
        return (struct access_decision){.rule = RULE_DISABLED};
    if (q->right == RIGHT_ANY && user->kind != USER_OF_NOBODY)
        return (struct access_decision){true, RULE_OPEN, NULL, NULL};
    if (owns(user, q))
        return (struct access_decision){true, RULE_OWNER, NULL, NULL};
    return by_grants(doc, user, q);
}

static void put_grant(const struct grant *g, char *text, size_t size)
{
    if (g->bucket == NULL)
        snprintf(text, size, "the cluster");
    else
        snprintf(text, size, "%.63s/%.24s%s", g->bucket, g->prefix,
                 g->prefix_len > 24 ? "..." : "*");
}

const char *access_rule_text(const struct access_decision *d, char text[static ACCESS_RULE_CHARS])
{
    static const char *const plain[] = {
        [RULE_OPEN] = "open",
        [RULE_DISABLED] = "user disabled",
        [RULE_OWNER] = "owner",
        [RULE_DENIED] = "no grant",
    };
    char on[96] = "";
    if (d->rule != RULE_GRANT && d->rule != RULE_ROLE)
        return plain[d->rule];
    put_grant(d->grant, on, sizeof on);
    if (d->rule == RULE_GRANT)
        snprintf(text, ACCESS_RULE_CHARS, "grant on %.95s", on);
    else
        snprintf(text, ACCESS_RULE_CHARS, "role %.24s on %.95s", d->role, on);
    return text;
}

int access_deny(const struct user *user, const struct access_question *q, struct error *err)
{
    const char *name = user != NULL ? user->name : USER_ANONYMOUS;
    if (user != NULL && !user->enabled)
        return error_set(err, E_ACCESS_DENIED, "user '%s' is disabled", name);
    if (q->bucket == NULL)
        return error_set(err, E_ACCESS_DENIED, "user '%s' lacks the right '%s' on the cluster",
                         name, right_name(q->right));
    if (q->key_len == 0)
        return error_set(err, E_ACCESS_DENIED, "user '%s' lacks the right '%s' on bucket '%.80s'",
                         name, right_name(q->right), q->bucket);
    return error_set(err, E_ACCESS_DENIED, "user '%s' lacks the right '%s' on '%.80s/%.*s'", name,
                     right_name(q->right), q->bucket, (int)(q->key_len < 200 ? q->key_len : 200),
                     q->key);
}
