#include "cluster/command/access_rules.h"

#include <string.h>

#include "cluster/documents/state.h"

/* --- what the actor has ----------------------------------------------------------------------- */

/* Does a grant of the actor's, or of one of the roles, give all that `g` gives?  Rights may come
 * from several. */
static bool has_right(const struct access *a, const struct user *actor, const struct grant *g)
{
    if (grants_cover(&actor->grants, g))
        return true;
    for (size_t i = 0; i < actor->role_count; i++) {
        const struct grants *held = access_role_grants(a, actor->roles[i]);
        if (held != NULL && grants_cover(held, g))
            return true;
    }
    return false;
}

static bool owns(const struct cluster_state *s, const struct user *actor, const struct grant *g)
{
    const struct bucket *b = g->bucket != NULL ? bmd_bucket(&s->bmd, g->bucket) : NULL;
    return b != NULL && b->owner != NULL && strcmp(b->owner, actor->id) == 0;
}

/* The first right of the grant that the actor lacks; RIGHT_UNSET: none. */
static enum right lacks(const struct cluster_state *s, const struct user *actor,
                        const struct grant *g)
{
    if (owns(s, actor, g))
        return RIGHT_UNSET;
    for (enum right r = RIGHT_ANY + 1; r < RIGHTS; r++) {
        struct grant one = *g;
        one.rights &= right_bit(r);
        if (one.rights != 0 && !has_right(&s->access, actor, &one))
            return r;
    }
    return RIGHT_UNSET;
}

static int check_gives(const struct cluster_state *s, const struct user *actor,
                       const struct grants *given, struct error *err)
{
    for (size_t i = 0; i < given->count; i++) {
        enum right r = lacks(s, actor, &given->items[i]);
        if (r != RIGHT_UNSET)
            return error_set(err, E_ACCESS_DENIED,
                             "user '%s' cannot give the right '%s' on '%.80s', which '%s' does not "
                             "have",
                             actor->name, right_name(r),
                             given->items[i].bucket != NULL ? given->items[i].bucket
                                                            : "the cluster",
                             actor->name);
    }
    return 0;
}

static int check_gives_all_of(const struct cluster_state *s, const struct user *actor,
                              const struct user *user, struct error *err)
{
    int r = check_gives(s, actor, &user->grants, err);
    for (size_t i = 0; i < user->role_count && r == 0; i++) {
        const struct grants *g = access_role_grants(&s->access, user->roles[i]);
        if (g != NULL)
            r = check_gives(s, actor, g, err);
    }
    return r;
}

/* The buckets that the user owns are rights, too. */
static int check_owned(const struct cluster_state *s, const struct user *actor,
                       const struct user *user, struct error *err)
{
    const struct grant all = {.rights = right_bit(RIGHT_LIST) | right_bit(RIGHT_READ) |
                                        right_bit(RIGHT_WRITE) | right_bit(RIGHT_DELETE) |
                                        right_bit(RIGHT_ADMIN),
                              .prefix = ""};
    for (size_t i = 0; i < s->bmd.count; i++) {
        struct grant g = all;
        g.bucket = s->bmd.buckets[i].name;
        const char *owner = s->bmd.buckets[i].owner;
        if (owner != NULL && strcmp(owner, user->id) == 0 && lacks(s, actor, &g) != RIGHT_UNSET)
            return error_set(err, E_ACCESS_DENIED,
                             "user '%s' owns bucket '%.80s', on which '%s' lacks rights",
                             user->name, g.bucket, actor->name);
    }
    return 0;
}

/* --- the rules -------------------------------------------------------------------------------- */

static int need_actor(const struct cluster_state *s, const char *id, const struct user **out,
                      struct error *err)
{
    *out = access_user_by_id(&s->access, id);
    if (*out != NULL && (*out)->enabled)
        return 0;
    return error_set(err, E_ACCESS_DENIED, "the user who asks is gone or disabled");
}

static int need_users(const struct cluster_state *s, const struct user *actor, struct error *err)
{
    const struct grant users = {.rights = right_bit(RIGHT_USERS), .prefix = ""};
    if (has_right(&s->access, actor, &users))
        return 0;
    return error_set(err, E_ACCESS_DENIED, "user '%s' lacks the right 'users' on the cluster",
                     actor->name);
}

/* *free: the actor may do everything. */
static int check_actor(const struct cluster_state *s, const char *id, const struct user *before,
                       const struct user **actor, bool *free, struct error *err)
{
    int r;
    *free = id == NULL;
    if (*free)
        return 0;
    if ((r = need_actor(s, id, actor, err)) != 0 || (r = need_users(s, *actor, err)) != 0)
        return r;
    *free = access_is_admin(&s->access, *actor);
    if (!*free && before != NULL && access_is_admin(&s->access, before))
        return error_set(err, E_ACCESS_DENIED,
                         "user '%s' has the right 'admin': only another user with it can change "
                         "that user",
                         before->name);
    return 0;
}

/* A user may be disabled also by who has fewer rights. */
static bool only_disables(const struct user *before, const struct user *after)
{
    return !after->enabled && before != NULL && user_same_rights(before, after);
}

int access_may_change(const struct cluster_state *s, const char *actor, const struct user *before,
                      const struct user *after, struct error *err)
{
    const struct user *asks;
    bool free;
    int r = check_actor(s, actor, before, &asks, &free, err);
    if (r != 0 || free || after == NULL || only_disables(before, after))
        return r;
    return check_gives_all_of(s, asks, after, err);
}

int access_may_act_as(const struct cluster_state *s, const char *actor, const struct user *user,
                      struct error *err)
{
    const struct user *asks;
    bool free;
    int r;
    if (actor != NULL && strcmp(actor, user->id) == 0)
        return need_actor(s, actor, &asks, err);
    if ((r = check_actor(s, actor, user, &asks, &free, err)) != 0 || free ||
        (r = check_gives_all_of(s, asks, user, err)) != 0)
        return r;
    return check_owned(s, asks, user, err);
}

int access_may_change_role(const struct cluster_state *s, const char *actor,
                           const struct role *before, const struct role *after, struct error *err)
{
    const struct user *asks;
    bool free;
    int r = check_actor(s, actor, NULL, &asks, &free, err);
    if (r != 0 || free)
        return r;
    if (before != NULL && (r = check_gives(s, asks, &before->grants, err)) != 0)
        return r;
    return after != NULL ? check_gives(s, asks, &after->grants, err) : 0;
}
