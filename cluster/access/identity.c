#include "cluster/access/identity.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/base/document.h"
#include "cluster/base/json_items.h"
#include "common/jsonx.h"

/* --- lookup ----------------------------------------------------------------------------------- */

static size_t find_user(const struct access *a, const char *name, bool *found)
{
    return document_find(a->users, a->user_count, sizeof a->users[0], offsetof(struct user, name),
                         name, found);
}

static size_t find_role(const struct access *a, const char *name, bool *found)
{
    return document_find(a->roles, a->role_count, sizeof a->roles[0], offsetof(struct role, name),
                         name, found);
}

const struct user *access_user(const struct access *a, const char *name)
{
    bool found;
    size_t at = find_user(a, name, &found);
    return found ? &a->users[at] : NULL;
}

static int compare_id(const void *id, const void *item)
{
    return strcmp(id, (*(const struct user *const *)item)->id);
}

const struct user *access_user_by_id(const struct access *a, const char *id)
{
    const struct user **at =
        a->user_count == 0 ? NULL
                           : bsearch(id, a->by_id, a->user_count, sizeof a->by_id[0], compare_id);
    return at != NULL ? *at : NULL;
}

const struct key_owner *access_key_owner(const struct access *a, const char *access_key)
{
    bool found;
    size_t at = document_find(a->by_key, a->key_count, sizeof a->by_key[0],
                              offsetof(struct key_owner, access), access_key, &found);
    return found ? &a->by_key[at] : NULL;
}

const struct role *access_role(const struct access *a, const char *name)
{
    bool found;
    size_t at = find_role(a, name, &found);
    return found ? &a->roles[at] : NULL;
}

const struct grants *access_role_grants(const struct access *a, const char *name)
{
    const struct builtin_role *builtin = builtin_role_find(name);
    if (builtin != NULL)
        return &builtin->grants;
    const struct role *r = access_role(a, name);
    return r != NULL ? &r->grants : NULL;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    return a < b ? a : b;
}

struct access_rate access_rate_of(const struct access *a, const struct user *u)
{
    struct access_rate rate = u->rate;
    for (size_t i = 0; i < u->role_count; i++) {
        const struct role *r = access_role(a, u->roles[i]);
        if (r == NULL)
            continue;
        rate.requests = least(rate.requests, r->rate.requests);
        rate.bytes = least(rate.bytes, r->rate.bytes);
    }
    return rate;
}

static bool grants_give_all(const struct grants *g)
{
    for (size_t i = 0; i < g->count; i++) {
        if (grant_gives(&g->items[i], RIGHT_CLUSTER_ADMIN, NULL, NULL, 0))
            return true;
    }
    return false;
}

bool access_is_admin(const struct access *a, const struct user *u)
{
    if (grants_give_all(&u->grants))
        return true;
    for (size_t i = 0; i < u->role_count; i++) {
        const struct grants *g = access_role_grants(a, u->roles[i]);
        if (g != NULL && grants_give_all(g))
            return true;
    }
    return false;
}

/* --- the next document ------------------------------------------------------------------------ */

static void access_begin(struct access *a, uint64_t version, size_t users, size_t roles)
{
    *a = (struct access){.version = version, .memory = document_new()};
    struct arena *arena = document_arena(a->memory);
    a->users = arena_alloc(arena, users * sizeof a->users[0]);
    a->roles = arena_alloc(arena, roles * sizeof a->roles[0]);
    a->by_id = arena_alloc(arena, users * sizeof a->by_id[0]);
    a->by_key = arena_alloc(arena, users * USER_KEYS_MAX * sizeof a->by_key[0]);
}

static int compare_users(const void *a, const void *b)
{
    return strcmp((*(const struct user *const *)a)->id, (*(const struct user *const *)b)->id);
}

static void access_index(struct access *a)
{
    for (size_t i = 0; i < a->user_count; i++) {
        const struct user *u = &a->users[i];
        a->by_id[i] = u;
        for (size_t k = 0; k < u->key_count; k++)
            a->by_key[a->key_count++] = (struct key_owner){u->keys[k].access, u, &u->keys[k]};
    }
    if (a->user_count > 0)
        qsort(a->by_id, a->user_count, sizeof a->by_id[0], compare_users);
    (void)document_sort(
        a->by_key, a->key_count, sizeof a->by_key[0],
        offsetof(struct key_owner, access)); /* access_check() finds what is twice */
}

static void append_user(void *to, const void *item)
{
    struct access *a = to;
    user_copy(item, document_arena(a->memory), &a->users[a->user_count++]);
}

static void append_role(void *to, const void *item)
{
    struct access *a = to;
    role_copy(item, document_arena(a->memory), &a->roles[a->role_count++]);
}

const char *access_changed(const struct access *old, const struct document_change *users,
                           const struct document_change *roles, struct access *next)
{
    access_begin(next, old->version + 1, old->user_count + users->put_count,
                 old->role_count + roles->put_count);
    const char *no_user = document_merge(old->users, old->user_count, sizeof old->users[0],
                                         offsetof(struct user, name), users, append_user, next);
    const char *no_role = document_merge(old->roles, old->role_count, sizeof old->roles[0],
                                         offsetof(struct role, name), roles, append_role, next);
    access_index(next);
    return no_user != NULL ? no_user : no_role;
}

static const struct document_change nothing;

void access_with_users(const struct access *old, const struct user *users, size_t count,
                       struct access *next)
{
    const struct document_change c = {.put = users, .put_count = count};
    (void)access_changed(old, &c, &nothing, next);
}

void access_with_user(const struct access *old, const struct user *u, struct access *next)
{
    access_with_users(old, u, 1, next);
}

void access_without_user(const struct access *old, const char *name, struct access *next)
{
    const struct document_change c = {.drop = &name, .drop_count = 1};
    (void)access_changed(old, &c, &nothing, next);
}

void access_with_role(const struct access *old, const struct role *r, struct access *next)
{
    const struct document_change c = {.put = r, .put_count = 1};
    (void)access_changed(old, &nothing, &c, next);
}

void access_without_role(const struct access *old, const char *name, struct access *next)
{
    const struct document_change c = {.drop = &name, .drop_count = 1};
    (void)access_changed(old, &nothing, &c, next);
}

/* --- JSON ------------------------------------------------------------------------------------- */

json_t *access_to_json(const struct access *a, enum access_view view)
{
    json_t *users = json_array();
    json_t *roles = json_array();
    for (size_t i = 0; i < a->user_count; i++)
        json_array_append_new(users, user_to_json(&a->users[i], view));
    for (size_t i = 0; i < a->role_count; i++)
        json_array_append_new(roles, role_to_json(&a->roles[i]));
    return json_pack("{s:I, s:o, s:o}", "version", (json_int_t)a->version, "users", users, "roles",
                     roles);
}

static int users_from_json(json_t *users, struct access *out, struct error *err)
{
    for (size_t i = 0; i < json_array_size(users); i++) {
        char path[64];
        json_t *item;
        int r = json_item(users, "access.users", i, &item, path, err);
        if (r == 0)
            r = user_from_json(item, path, document_arena(out->memory), &out->users[i], err);
        if (r != 0)
            return r;
        out->user_count++;
    }
    const char *twice = document_sort(out->users, out->user_count, sizeof out->users[0],
                                      offsetof(struct user, name));
    if (twice != NULL)
        return error_set(err, E_INVALID, "field 'access.users' has user '%s' twice", twice);
    access_index(out);
    return 0;
}

static int roles_from_json(json_t *roles, struct access *out, struct error *err)
{
    for (size_t i = 0; i < json_array_size(roles); i++) {
        char path[64];
        json_t *item;
        int r = json_item(roles, "access.roles", i, &item, path, err);
        if (r == 0)
            r = role_from_json(item, path, document_arena(out->memory), &out->roles[i], err);
        if (r != 0)
            return r;
        out->role_count++;
    }
    const char *twice = document_sort(out->roles, out->role_count, sizeof out->roles[0],
                                      offsetof(struct role, name));
    if (twice != NULL)
        return error_set(err, E_INVALID, "field 'access.roles' has role '%s' twice", twice);
    return 0;
}

static int check_roles(const struct access *a, const struct user *u, struct error *err)
{
    for (size_t i = 0; i < u->role_count; i++) {
        if (access_role_grants(a, u->roles[i]) == NULL)
            return error_set(err, E_ROLE_NOT_FOUND, "user '%s': role '%s' does not exist", u->name,
                             u->roles[i]);
    }
    return 0;
}

static int check_bounds(uint64_t version, size_t users, size_t roles, struct error *err)
{
    if (version > 0 && users <= USERS_MAX && roles <= ROLES_MAX)
        return 0;
    return error_set(err, E_INVALID,
                     "field 'access' has version 0, or more than %d users or %d roles", USERS_MAX,
                     ROLES_MAX);
}

int access_check(const struct access *a, struct error *err)
{
    int r = 0;
    if (a->user_count > 0 || a->role_count > 0)
        r = check_bounds(a->version, a->user_count, a->role_count, err);
    for (size_t i = 0; i < a->user_count && r == 0; i++) {
        if (i > 0 && strcmp(a->by_id[i - 1]->id, a->by_id[i]->id) == 0)
            return error_set(err, E_INVALID, "two users have the id '%s'", a->by_id[i]->id);
        r = check_roles(a, &a->users[i], err);
    }
    for (size_t i = 1; i < a->key_count && r == 0; i++) {
        if (strcmp(a->by_key[i - 1].access, a->by_key[i].access) == 0)
            return error_set(err, E_INVALID, "two keys are '%s'", a->by_key[i].access);
    }
    return r;
}

int access_from_json(json_t *doc, struct access *out, struct error *err)
{
    json_t *users = NULL;
    json_t *roles = NULL;
    uint64_t version;
    int r;
    if ((r = json_need_u64(doc, "access", "version", &version, err)) != 0 ||
        (r = json_get_array(doc, "access", "users", &users, err)) != 0 ||
        (r = json_get_array(doc, "access", "roles", &roles, err)) != 0 ||
        (r = check_bounds(version, json_array_size(users), json_array_size(roles), err)) != 0)
        return r;
    access_begin(out, version, json_array_size(users), json_array_size(roles));
    r = users_from_json(users, out, err);
    return r != 0 ? r : roles_from_json(roles, out, err);
}
