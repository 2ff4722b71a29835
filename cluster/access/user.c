#include "cluster/access/user.h"

#include <string.h>

#include "cluster/base/json_items.h"
#include "common/jsonx.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
static const char *const kinds[USER_KINDS] = {
    [USER_PERSON] = "person", [USER_SERVICE] = "service", [USER_OF_NOBODY] = "anonymous"};

/* --- names ------------------------------------------------------------------------------------ */

const char *user_kind_name(enum user_kind kind)
{
    return kinds[kind];
}

int user_name_check(const char *name, struct error *err)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@-";
    size_t len = strlen(name);
    if (len > 0 && len <= USER_NAME_MAX && strchr(first, name[0]) != NULL &&
        strspn(name, all) == len)
        return 0;
    return error_set(err, E_NAME,
                     "'%.80s' is no name of a user or role: it must have 1 to %d of a-z A-Z 0-9 _ "
                     ". @ - and begin with a letter or digit",
                     name, USER_NAME_MAX);
}

bool user_id_is_valid(const char *id)
{
    return strlen(id) == USER_ID_CHARS && strspn(id, "0123456789abcdef") == USER_ID_CHARS;
}

bool access_key_is_in_force(const struct access_key *k, int64_t now_ms)
{
    return k->expires_ms == 0 || now_ms < k->expires_ms;
}

bool access_key_is_valid(const char *access_key)
{
    return strlen(access_key) == ACCESS_KEY_CHARS &&
           strspn(access_key, alphabet) == ACCESS_KEY_CHARS;
}

/* --- copies -------------------------------------------------------------------------------- */

void user_copy(const struct user *from, struct arena *a, struct user *to)
{
    *to = *from;
    to->id = arena_strdup(a, from->id);
    to->name = arena_strdup(a, from->name);
    to->password = arena_strdup(a, from->password);
    to->roles = arena_alloc(a, from->role_count * sizeof to->roles[0]);
    for (size_t i = 0; i < from->role_count; i++)
        to->roles[i] = arena_strdup(a, from->roles[i]);
    grants_copy(&from->grants, a, &to->grants);
    for (size_t i = 0; i < from->key_count; i++) {
        to->keys[i].access = arena_strdup(a, from->keys[i].access);
        to->keys[i].secret = arena_strdup(a, from->keys[i].secret);
    }
}

void role_copy(const struct role *from, struct arena *a, struct role *to)
{
    *to = *from;
    to->name = arena_strdup(a, from->name);
    grants_copy(&from->grants, a, &to->grants);
}

static bool rate_equal(const struct access_rate *a, const struct access_rate *b)
{
    return a->requests == b->requests && a->bytes == b->bytes;
}

static bool names_equal(const struct user *a, const struct user *b)
{
    if (a->role_count != b->role_count)
        return false;
    for (size_t i = 0; i < a->role_count; i++) {
        if (strcmp(a->roles[i], b->roles[i]) != 0)
            return false;
    }
    return true;
}

static bool keys_equal(const struct user *a, const struct user *b)
{
    for (size_t i = 0; i < a->key_count; i++) {
        const struct access_key *x = &a->keys[i];
        const struct access_key *y = &b->keys[i];
        if (strcmp(x->access, y->access) != 0 || strcmp(x->secret, y->secret) != 0 ||
            x->created_ms != y->created_ms || x->expires_ms != y->expires_ms)
            return false;
    }
    return true;
}

bool user_same_rights(const struct user *a, const struct user *b)
{
    return names_equal(a, b) && grants_equal(&a->grants, &b->grants);
}

bool user_equal(const struct user *a, const struct user *b)
{
    return strcmp(a->id, b->id) == 0 && strcmp(a->name, b->name) == 0 && a->kind == b->kind &&
           a->enabled == b->enabled && user_same_rights(a, b) && a->key_count == b->key_count &&
           keys_equal(a, b) && strcmp(a->password, b->password) == 0 &&
           a->tokens_after_ms == b->tokens_after_ms && rate_equal(&a->rate, &b->rate);
}

bool role_equal(const struct role *a, const struct role *b)
{
    return strcmp(a->name, b->name) == 0 && grants_equal(&a->grants, &b->grants) &&
           rate_equal(&a->rate, &b->rate);
}

/* --- to JSON ---------------------------------------------------------------------------------- */

static void put_text(json_t *doc, const char *field, const char *text)
{
    if (text[0] != '\0')
        json_object_set_new(doc, field, json_string(text));
}

static void put_number(json_t *doc, const char *field, int64_t number)
{
    if (number != 0)
        json_object_set_new(doc, field, json_integer(number));
}

static void put_array(json_t *doc, const char *field, json_t *array)
{
    if (json_array_size(array) > 0)
        json_object_set(doc, field, array);
    json_decref(array);
}

static void put_rate(json_t *doc, const struct access_rate *rate)
{
    if (rate->requests != 0 || rate->bytes != 0)
        json_object_set_new(doc, "rate",
                            json_pack("{s:I, s:I}", "requests", (json_int_t)rate->requests, "bytes",
                                      (json_int_t)rate->bytes));
}

static json_t *keys_to_json(const struct user *u, enum access_view view)
{
    json_t *keys = json_array();
    for (size_t i = 0; i < u->key_count; i++) {
        const struct access_key *k = &u->keys[i];
        json_t *key = json_pack("{s:s}", "access", k->access);
        if (view == ACCESS_WHOLE)
            json_object_set_new(key, "secret", json_string(k->secret));
        put_number(key, "created_ms", k->created_ms);
        put_number(key, "expires_ms", k->expires_ms);
        json_array_append_new(keys, key);
    }
    return keys;
}

static json_t *names_to_json(const char *const *names, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_string(names[i]));
    return array;
}

json_t *user_to_json(const struct user *u, enum access_view view)
{
    json_t *doc = json_pack("{s:s, s:s, s:s, s:b}", "id", u->id, "name", u->name, "kind",
                            kinds[u->kind], "enabled", u->enabled);
    put_array(doc, "roles", names_to_json(u->roles, u->role_count));
    put_array(doc, "grants", grants_to_json(&u->grants));
    put_array(doc, "keys", keys_to_json(u, view));
    if (view == ACCESS_WHOLE)
        put_text(doc, "password", u->password);
    put_number(doc, "tokens_after_ms", u->tokens_after_ms);
    put_rate(doc, &u->rate);
    return doc;
}

json_t *role_to_json(const struct role *r)
{
    json_t *doc = json_pack("{s:s}", "name", r->name);
    put_array(doc, "grants", grants_to_json(&r->grants));
    put_rate(doc, &r->rate);
    return doc;
}

/* --- from JSON -------------------------------------------------------------------------------- */

static int number_from_json(json_t *doc, const char *path, const char *field, int64_t *out,
                            struct error *err)
{
    int r = json_get_i64(doc, path, field, out, err);
    if (r == 0 && *out < 0)
        return error_set(err, E_INVALID, "field '%s.%s' must not be negative", path, field);
    return r;
}

static int rate_from_json(json_t *doc, const char *path, struct access_rate *out, struct error *err)
{
    json_t *rate = NULL;
    char rate_path[64];
    int r = json_get_object(doc, path, "rate", &rate, err);
    if (r != 0 || rate == NULL)
        return r;
    snprintf(rate_path, sizeof rate_path, "%.50s.rate", path);
    r = json_get_u64(rate, rate_path, "requests", &out->requests, err);
    return r != 0 ? r : json_get_size(rate, rate_path, "bytes", &out->bytes, err);
}

static int kind_from_json(json_t *doc, const char *path, enum user_kind *out, struct error *err)
{
    const char *name = kinds[USER_PERSON];
    int r = json_get_str(doc, path, "kind", &name, err);
    if (r != 0)
        return r;
    for (*out = 0; *out < USER_KINDS; (*out)++) {
        if (strcmp(kinds[*out], name) == 0)
            return 0;
    }
    return error_set(err, E_INVALID, "field '%s.kind' must be 'person' or 'service'", path);
}

static int roles_from_json(json_t *doc, const char *path, struct arena *a, struct user *out,
                           struct error *err)
{
    json_t *names = NULL;
    int r = json_get_array(doc, path, "roles", &names, err);
    if (r != 0)
        return r;
    if (json_array_size(names) > USER_ROLES_MAX)
        return error_set(err, E_INVALID, "field '%s.roles' has more than %d items", path,
                         USER_ROLES_MAX);
    out->roles = arena_alloc(a, json_array_size(names) * sizeof out->roles[0]);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (name == NULL)
            return error_set(err, E_JSON, "field '%s.roles[%zu]' must be a string", path, i);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(out->roles[k], name) == 0)
                return error_set(err, E_INVALID, "field '%s.roles' has '%.64s' twice", path, name);
        }
        if ((r = user_name_check(name, err)) != 0)
            return r;
        out->roles[out->role_count++] = arena_strdup(a, name);
    }
    return 0;
}

static int key_from_json(json_t *doc, const char *path, struct arena *a, struct access_key *out,
                         struct error *err)
{
    const char *access;
    const char *secret;
    int r;
    if ((r = json_need_str(doc, path, "access", &access, err)) != 0 ||
        (r = json_need_str(doc, path, "secret", &secret, err)) != 0 ||
        (r = number_from_json(doc, path, "created_ms", &out->created_ms, err)) != 0 ||
        (r = number_from_json(doc, path, "expires_ms", &out->expires_ms, err)) != 0)
        return r;
    if (!access_key_is_valid(access) || secret[0] == '\0' || strlen(secret) >= SEALED_MAX)
        return error_set(err, E_INVALID, "field '%s' is no access key with its sealed secret",
                         path);
    out->access = arena_strdup(a, access);
    out->secret = arena_strdup(a, secret);
    return 0;
}

static int keys_from_json(json_t *doc, const char *path, struct arena *a, struct user *out,
                          struct error *err)
{
    char array[64];
    json_t *keys = NULL;
    int r = json_get_array(doc, path, "keys", &keys, err);
    if (r != 0)
        return r;
    snprintf(array, sizeof array, "%.50s.keys", path);
    if (json_array_size(keys) > USER_KEYS_MAX)
        return error_set(err, E_INVALID, "field '%s' has more than %d items", array, USER_KEYS_MAX);
    for (size_t i = 0; i < json_array_size(keys); i++) {
        char item_path[64];
        json_t *item;
        if ((r = json_item(keys, array, i, &item, item_path, err)) != 0 ||
            (r = key_from_json(item, item_path, a, &out->keys[i], err)) != 0)
            return r;
        out->key_count++;
    }
    return 0;
}

/* What the user of everybody may have. */
static int check_anonymous(const struct user *u, const char *path, struct error *err)
{
    const uint32_t allowed = right_bit(RIGHT_LIST) | right_bit(RIGHT_READ) | right_bit(RIGHT_WRITE);
    bool named = strcmp(u->name, USER_ANONYMOUS) == 0;
    if (named != (u->kind == USER_OF_NOBODY))
        return error_set(
            err, E_INVALID,
            "field '%s': the name 'anonymous' and the kind 'anonymous' belong together", path);
    if (!named)
        return 0;
    if (u->key_count > 0 || u->password[0] != '\0' || u->role_count > 0)
        return error_set(err, E_INVALID,
                         "field '%s': 'anonymous' cannot have keys, a password or roles", path);
    for (size_t i = 0; i < u->grants.count; i++) {
        if ((u->grants.items[i].rights & ~allowed) != 0)
            return error_set(err, E_INVALID,
                             "field '%s': 'anonymous' can have the rights list, read and write on "
                             "buckets alone",
                             path);
    }
    return 0;
}

int user_check(const struct user *u, const char *path, struct error *err)
{
    if (u->kind == USER_SERVICE && u->password[0] != '\0')
        return error_set(err, E_INVALID, "field '%s': a service cannot have a password", path);
    return check_anonymous(u, path, err);
}

static int head_from_json(json_t *doc, const char *path, struct arena *a, struct user *out,
                          struct error *err)
{
    const char *id;
    const char *name;
    const char *password = "";
    int r;
    if ((r = json_need_str(doc, path, "id", &id, err)) != 0 ||
        (r = json_need_str(doc, path, "name", &name, err)) != 0 ||
        (r = user_name_check(name, err)) != 0 ||
        (r = json_get_str(doc, path, "password", &password, err)) != 0)
        return r;
    if (!user_id_is_valid(id))
        return error_set(err, E_INVALID, "field '%s.id' must be %d hex digits", path,
                         USER_ID_CHARS);
    if (strlen(password) >= PASSWORD_HASH_MAX)
        return error_set(err, E_INVALID, "field '%s.password' is no hash", path);
    out->id = arena_strdup(a, id);
    out->name = arena_strdup(a, name);
    out->password = arena_strdup(a, password);
    return 0;
}

int user_from_json(json_t *doc, const char *path, struct arena *a, struct user *out,
                   struct error *err)
{
    int r;
    *out = (struct user){.enabled = true};
    if ((r = head_from_json(doc, path, a, out, err)) != 0 ||
        (r = kind_from_json(doc, path, &out->kind, err)) != 0 ||
        (r = json_get_bool(doc, path, "enabled", &out->enabled, err)) != 0 ||
        (r = roles_from_json(doc, path, a, out, err)) != 0 ||
        (r = grants_from_json(doc, path, a, &out->grants, err)) != 0 ||
        (r = keys_from_json(doc, path, a, out, err)) != 0 ||
        (r = number_from_json(doc, path, "tokens_after_ms", &out->tokens_after_ms, err)) != 0 ||
        (r = rate_from_json(doc, path, &out->rate, err)) != 0)
        return r;
    return user_check(out, path, err);
}

int role_from_json(json_t *doc, const char *path, struct arena *a, struct role *out,
                   struct error *err)
{
    const char *name;
    int r;
    *out = (struct role){0};
    if ((r = json_need_str(doc, path, "name", &name, err)) != 0 ||
        (r = user_name_check(name, err)) != 0)
        return r;
    if (builtin_role_find(name) != NULL)
        return error_set(err, E_INVALID, "the role '%s' is built in: it cannot be changed", name);
    out->name = arena_strdup(a, name);
    r = grants_from_json(doc, path, a, &out->grants, err);
    return r != 0 ? r : rate_from_json(doc, path, &out->rate, err);
}
