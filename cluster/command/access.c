/* Commands on users, their keys, roles and grants.
 *
 * A change is made in the JSON form of the user, which is then read anew: one set of checks holds
 * for the document and for its changes. */
#include "cluster/command/command.h"
#include "cluster/command/parts.h"

#include <string.h>

#include "cluster/command/access_rules.h"
#include "cluster/documents/settings.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { AHEAD_MAX_MS = 5 * 60 * 1000 }; /* as far as clocks of clients may be, at a login */

/* Replaces the patch's fields of `user`, which is the JSON form. */
static int merge(json_t *user, json_t *patch, const char *const *fields, struct error *err)
{
    int r = json_only_fields(patch, "", fields, err);
    if (r == 0)
        json_object_update(user, patch);
    return r;
}

static int need_user(const struct cluster_state *s, const char *name, const struct user **out,
                     struct error *err)
{
    *out = access_user(&s->access, name);
    if (*out != NULL)
        return 0;
    return error_set(err, E_USER_NOT_FOUND, "user '%.80s' does not exist", name);
}

static int check_roles_exist(const struct access *a, const struct user *u, struct error *err)
{
    for (size_t i = 0; i < u->role_count; i++) {
        if (access_role_grants(a, u->roles[i]) == NULL)
            return error_set(err, E_ROLE_NOT_FOUND, "role '%s' does not exist", u->roles[i]);
    }
    return 0;
}

/* The next snapshot with the user, or the same one where nothing changes. */
static int put_user(const struct cluster_state *s, const struct user *u,
                    const struct cluster_state **next, struct error *err)
{
    struct access a;
    const struct user *before = access_user(&s->access, u->name);
    int r = check_roles_exist(&s->access, u, err);
    if (r != 0)
        return r;
    if (before != NULL && user_equal(before, u))
        return command_keep(s, next);
    access_with_user(&s->access, u, &a);
    *next = command_next_access(s, &a);
    return 0;
}

/* The tokens that the user has end.  Of two primaries one clock may be behind. */
static void withdraw_tokens(struct user *u, int64_t wall_ms)
{
    if (u->tokens_after_ms < wall_ms)
        u->tokens_after_ms = wall_ms;
}

/* --- users ------------------------------------------------------------------------------------ */

static int check_new_id(const struct cluster_state *s, const char *id, struct error *err)
{
    if (access_user_by_id(&s->access, id) != NULL)
        return error_set(err, E_EXISTS, "the id '%s' is taken", id);
    return 0;
}

static int check_new_user(const struct cluster_state *s, const struct user *u, struct error *err)
{
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    if (access_user(&s->access, u->name) != NULL)
        return error_set(err, E_USER_EXISTS, "user '%s' exists", u->name);
    int r = check_new_id(s, u->id, err);
    if (r != 0)
        return r;
    if (u->kind == USER_OF_NOBODY)
        return error_set(err, E_INVALID, "'anonymous' is made by its first grant");
    if (s->access.user_count >= settings.users_max)
        return error_set(err, E_OVERLOAD, "the cluster has %zu users, as many as users_max allows",
                         s->access.user_count);
    return 0;
}

static int check_new_key(const struct cluster_state *s, const struct access_key *k,
                         struct error *err)
{
    if (access_key_owner(&s->access, k->access) != NULL)
        return error_set(err, E_EXISTS, "the access key '%s' is taken", k->access);
    return 0;
}

static int user_of_patch(const struct command *cmd, struct arena *arena, struct user *u,
                         struct error *err)
{
    static const char *const fields[] = {"name",   "kind", "enabled", "roles",
                                         "grants", "rate", NULL};
    _cleanup_json_ json_t *doc = json_pack("{s:s}", "id", cmd->text);
    int r = merge(doc, cmd->patch, fields, err);
    if (r == 0)
        r = user_from_json(doc, "user", arena, u, err);
    if (r == 0 && cmd->key != NULL)
        u->keys[u->key_count++] = *cmd->key;
    return r;
}

int command_user_add(const struct cluster_state *s, const struct command *cmd,
                     const struct cluster_state **next, struct error *err)
{
    struct user u;
    _cleanup_(arena_freep)
    struct arena *arena = arena_new(512);
    int r;
    if ((r = user_of_patch(cmd, arena, &u, err)) != 0 || (r = check_new_user(s, &u, err)) != 0 ||
        (cmd->key != NULL && (r = check_new_key(s, cmd->key, err)) != 0) ||
        (r = access_may_change(s, cmd->actor, NULL, &u, err)) != 0)
        return r;
    return put_user(s, &u, next, err);
}

/* Less than before would make a token good again that was withdrawn.  Far ahead, it would refuse
 * the user until then, and nobody could take it back. */
static int check_withdrawn(const struct user *before, const struct user *after, int64_t wall_ms,
                           struct error *err)
{
    if (after->tokens_after_ms < before->tokens_after_ms)
        return error_set(err, E_INVALID,
                         "field 'tokens_after_ms' can only grow: that of user '%s' is %lld",
                         before->name, (long long)before->tokens_after_ms);
    if (after->tokens_after_ms > before->tokens_after_ms &&
        after->tokens_after_ms > wall_ms + AHEAD_MAX_MS)
        return error_set(
            err, E_INVALID,
            "field 'tokens_after_ms' is more than five minutes ahead: the time is %lld",
            (long long)wall_ms);
    return 0;
}

int command_user_change(const struct cluster_state *s, const struct command *cmd,
                        const struct cluster_state **next, struct error *err)
{
    static const char *const fields[] = {"kind", "enabled",         "roles", "grants",
                                         "rate", "tokens_after_ms", NULL};
    const struct user *before;
    struct user after;
    _cleanup_(arena_freep)
    struct arena *arena = arena_new(512);
    _cleanup_json_ json_t *doc = NULL;
    int r = need_user(s, cmd->name, &before, err);
    if (r != 0)
        return r;
    doc = user_to_json(before, ACCESS_WHOLE);
    if ((r = merge(doc, cmd->patch, fields, err)) != 0 ||
        (r = user_from_json(doc, "user", arena, &after, err)) != 0 ||
        (r = access_may_change(s, cmd->actor, before, &after, err)) != 0 ||
        (r = check_withdrawn(before, &after, cmd->wall_ms, err)) != 0)
        return r;
    if (before->enabled && !after.enabled)
        withdraw_tokens(&after, cmd->wall_ms);
    return put_user(s, &after, next, err);
}

int command_user_remove(const struct cluster_state *s, const struct command *cmd,
                        const struct cluster_state **next, struct error *err)
{
    const struct user *before;
    struct access a;
    int r;
    if ((r = need_user(s, cmd->name, &before, err)) != 0 ||
        (r = access_may_change(s, cmd->actor, before, NULL, err)) != 0)
        return r;
    access_without_user(&s->access, cmd->name, &a);
    *next = command_next_access(s, &a);
    return 0;
}

/* --- keys and passwords ----------------------------------------------------------------------- */

int command_key_add(const struct cluster_state *s, const struct command *cmd,
                    const struct cluster_state **next, struct error *err)
{
    const struct user *before;
    int r;
    if ((r = need_user(s, cmd->name, &before, err)) != 0 ||
        (r = access_may_act_as(s, cmd->actor, before, err)) != 0 ||
        (r = check_new_key(s, cmd->key, err)) != 0)
        return r;
    if (before->kind == USER_OF_NOBODY)
        return error_set(err, E_INVALID, "'anonymous' cannot have keys");
    if (before->key_count == USER_KEYS_MAX)
        return error_set(err, E_OVERLOAD, "user '%s' has %d keys already: remove one first",
                         before->name, USER_KEYS_MAX);
    struct user after = *before;
    after.keys[after.key_count++] = *cmd->key;
    return put_user(s, &after, next, err);
}

/* The tokens that were got with the key end with it (access/token.h). */
int command_key_remove(const struct cluster_state *s, const struct command *cmd,
                       const struct cluster_state **next, struct error *err)
{
    const struct user *before;
    int r;
    if ((r = need_user(s, cmd->name, &before, err)) != 0 ||
        (r = access_may_act_as(s, cmd->actor, before, err)) != 0)
        return r;
    struct user after = *before;
    after.key_count = 0;
    for (size_t i = 0; i < before->key_count; i++) {
        if (strcmp(before->keys[i].access, cmd->text) != 0)
            after.keys[after.key_count++] = before->keys[i];
    }
    if (after.key_count == before->key_count)
        return error_set(err, E_NOT_FOUND, "user '%s' has no key '%.40s'", before->name, cmd->text);
    return put_user(s, &after, next, err);
}

int command_password(const struct cluster_state *s, const struct command *cmd,
                     const struct cluster_state **next, struct error *err)
{
    const struct user *before;
    int r;
    if ((r = need_user(s, cmd->name, &before, err)) != 0 ||
        (r = access_may_act_as(s, cmd->actor, before, err)) != 0)
        return r;
    if (before->kind != USER_PERSON)
        return error_set(err, E_INVALID, "user '%s' is no person: it cannot have a password",
                         before->name);
    struct user after = *before;
    after.password = cmd->text;
    withdraw_tokens(&after, cmd->wall_ms);
    return put_user(s, &after, next, err);
}

/* The first user of a cluster, and the way back for an operator who has lost root's keys: `root`
 * has this key alone and no password, is enabled, and may do everything.  No user asks for it. */
int command_root_key(const struct cluster_state *s, const struct command *cmd,
                     const struct cluster_state **next, struct error *err)
{
    static const char *roles[] = {"admin"};
    const struct user *before = access_user(&s->access, USER_ROOT);
    const struct key_owner *owner = access_key_owner(&s->access, cmd->key->access);
    int r = before == NULL ? check_new_id(s, cmd->text, err) : 0;
    if (r == 0 && (owner == NULL || owner->user != before))
        r = check_new_key(s, cmd->key, err);
    if (r != 0)
        return r;
    struct user after = {.id = cmd->text, .name = USER_ROOT, .kind = USER_PERSON};
    if (before != NULL)
        after = *before;
    after.enabled = true;
    after.roles = roles;
    after.role_count = 1;
    after.keys[0] = *cmd->key;
    after.key_count = 1;
    after.password = "";
    if (before != NULL && !user_equal(before, &after))
        withdraw_tokens(&after, cmd->wall_ms);
    return put_user(s, &after, next, err);
}

/* A key that was removed or sealed anew since is passed over. */
static void reseal_keys(struct user *u, json_t *sealed)
{
    for (size_t i = 0; i < u->key_count; i++) {
        const char *secret = json_string_value(json_object_get(sealed, u->keys[i].access));
        if (secret != NULL)
            u->keys[i].secret = secret;
    }
}

int command_reseal(const struct cluster_state *s, const struct command *cmd,
                   const struct cluster_state **next, struct error *err)
{
    _cleanup_free_ struct user *changed = xcalloc(s->access.user_count, sizeof changed[0]);
    size_t count = 0;
    (void)err;
    for (size_t i = 0; i < s->access.user_count; i++) {
        changed[count] = s->access.users[i];
        reseal_keys(&changed[count], cmd->patch);
        count += !user_equal(&s->access.users[i], &changed[count]);
    }
    if (count == 0)
        return command_keep(s, next);
    struct access a;
    access_with_users(&s->access, changed, count, &a);
    *next = command_next_access(s, &a);
    return 0;
}

/* --- grants ----------------------------------------------------------------------------------- */

static bool same_place(const struct grant *a, const struct grant *b)
{
    struct grant x = *a;
    x.rights = b->rights;
    return grant_equal(&x, b);
}

/* Adds the rights to the grant on the same place, or the grant; false: there are GRANTS_MAX. */
static bool grants_add(struct grants *g, const struct grant *more)
{
    for (size_t i = 0; i < g->count; i++) {
        if (same_place(&g->items[i], more)) {
            g->items[i].rights |= more->rights;
            return true;
        }
    }
    if (g->count == GRANTS_MAX)
        return false;
    g->items[g->count++] = *more;
    return true;
}

/* False: no grant on this place had one of the rights. */
static bool grants_take(struct grants *g, const struct grant *less)
{
    bool taken = false;
    size_t kept = 0;
    for (size_t i = 0; i < g->count; i++) {
        struct grant one = g->items[i];
        if (same_place(&one, less)) {
            taken = taken || (one.rights & less->rights) != 0;
            one.rights &= ~less->rights;
        }
        if (one.rights != 0)
            g->items[kept++] = one;
    }
    g->count = kept;
    return taken;
}

/* `u` becomes the user of the command, with grants that have room for one more. */
static int open_grants(const struct cluster_state *s, const struct command *cmd,
                       struct arena *arena, struct user *u, struct grant *g, struct error *err)
{
    const struct user *before = access_user(&s->access, cmd->name);
    int r = grant_from_json(cmd->patch, "grant", arena, g, err);
    if (r != 0)
        return r;
    if (before == NULL && strcmp(cmd->name, USER_ANONYMOUS) != 0)
        return need_user(s, cmd->name, &before, err);
    *u = before != NULL ? *before
                        : (struct user){.id = USER_ANONYMOUS_ID,
                                        .name = USER_ANONYMOUS,
                                        .kind = USER_OF_NOBODY,
                                        .enabled = true,
                                        .password = ""};
    struct grant *items = arena_alloc(arena, GRANTS_MAX * sizeof items[0]);
    if (u->grants.count > 0)
        memcpy(items, u->grants.items, u->grants.count * sizeof items[0]);
    u->grants.items = items;
    return 0;
}

int command_grant(const struct cluster_state *s, const struct command *cmd,
                  const struct cluster_state **next, struct error *err)
{
    struct user u;
    struct grant g;
    _cleanup_(arena_freep)
    struct arena *arena = arena_new(512);
    int r = open_grants(s, cmd, arena, &u, &g, err);
    if (r != 0)
        return r;
    const struct user *before = access_user(&s->access, cmd->name);
    if (!grants_add(&u.grants, &g))
        return error_set(err, E_OVERLOAD,
                         "user '%s' has %d grants already: use a pattern, or a role", u.name,
                         GRANTS_MAX);
    if ((r = user_check(&u, "grant", err)) != 0 ||
        (r = access_may_change(s, cmd->actor, before, &u, err)) != 0)
        return r;
    return put_user(s, &u, next, err);
}

int command_revoke(const struct cluster_state *s, const struct command *cmd,
                   const struct cluster_state **next, struct error *err)
{
    struct user u;
    struct grant g;
    const struct user *before;
    _cleanup_(arena_freep)
    struct arena *arena = arena_new(512);
    int r;
    if ((r = need_user(s, cmd->name, &before, err)) != 0 ||
        (r = open_grants(s, cmd, arena, &u, &g, err)) != 0 ||
        (r = access_may_change(s, cmd->actor, before, NULL, err)) != 0)
        return r;
    if (!grants_take(&u.grants, &g))
        return error_set(err, E_NOT_FOUND,
                         "user '%s' has no such grant: give bucket and prefix as they are in it",
                         u.name);
    return put_user(s, &u, next, err);
}

/* --- roles ------------------------------------------------------------------------------------ */

int command_role_put(const struct cluster_state *s, const struct command *cmd,
                     const struct cluster_state **next, struct error *err)
{
    static const char *const fields[] = {"name", "grants", "rate", NULL};
    struct role role;
    struct access a;
    _cleanup_(arena_freep)
    struct arena *arena = arena_new(512);
    int r;
    if ((r = json_only_fields(cmd->patch, "", fields, err)) != 0 ||
        (r = role_from_json(cmd->patch, "role", arena, &role, err)) != 0)
        return r;
    const struct role *before = access_role(&s->access, role.name);
    if ((r = access_may_change_role(s, cmd->actor, before, &role, err)) != 0)
        return r;
    if (before != NULL && role_equal(before, &role))
        return command_keep(s, next);
    if (before == NULL && s->access.role_count == ROLES_MAX)
        return error_set(err, E_OVERLOAD, "the cluster has %d roles already: remove one first",
                         ROLES_MAX);
    access_with_role(&s->access, &role, &a);
    *next = command_next_access(s, &a);
    return 0;
}

static int check_unused(const struct access *a, const char *role, struct error *err)
{
    for (size_t i = 0; i < a->user_count; i++) {
        for (size_t k = 0; k < a->users[i].role_count; k++) {
            if (strcmp(a->users[i].roles[k], role) == 0)
                return error_set(err, E_PRECONDITION,
                                 "user '%s' has the role '%s': take it away first",
                                 a->users[i].name, role);
        }
    }
    return 0;
}

int command_role_remove(const struct cluster_state *s, const struct command *cmd,
                        const struct cluster_state **next, struct error *err)
{
    const struct role *before = access_role(&s->access, cmd->name);
    struct access a;
    int r;
    if (builtin_role_find(cmd->name) != NULL)
        return error_set(err, E_INVALID, "the role '%s' is built in: it cannot be removed",
                         cmd->name);
    if (before == NULL)
        return error_set(err, E_ROLE_NOT_FOUND, "role '%.80s' does not exist", cmd->name);
    if ((r = access_may_change_role(s, cmd->actor, before, NULL, err)) != 0 ||
        (r = check_unused(&s->access, before->name, err)) != 0)
        return r;
    access_without_role(&s->access, cmd->name, &a);
    *next = command_next_access(s, &a);
    return 0;
}
