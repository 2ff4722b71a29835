#include "cluster/access/grant.h"

#include <string.h>

#include "cluster/base/json_items.h"
#include "common/jsonx.h"

enum { PATTERN_MAX = 63, PREFIX_MAX = 1024 };

#define BIT(name) ((uint32_t)1 << RIGHT_##name)

static struct grant admin_grants[] = {{BIT(CLUSTER_ADMIN), NULL, "", 0}};
static struct grant operator_grants[] = {{BIT(SEE) | BIT(JOBS) | BIT(OPERATE), NULL, "", 0}};
static struct grant reader_grants[] = {{BIT(LIST) | BIT(READ), "*", "", 0}};
static struct grant writer_grants[] = {
    {BIT(LIST) | BIT(READ) | BIT(WRITE) | BIT(DELETE), "*", "", 0}};

static const struct builtin_role builtin_roles[] = {
    {"admin", {1, admin_grants}},
    {"operator", {1, operator_grants}},
    {"reader", {1, reader_grants}},
    {"writer", {1, writer_grants}},
};

const struct builtin_role *builtin_role_at(size_t index)
{
    return index < sizeof builtin_roles / sizeof builtin_roles[0] ? &builtin_roles[index] : NULL;
}

const struct builtin_role *builtin_role_find(const char *name)
{
    const struct builtin_role *r;
    for (size_t i = 0; (r = builtin_role_at(i)) != NULL; i++) {
        if (strcmp(r->name, name) == 0)
            return r;
    }
    return NULL;
}

/* --- what a grant gives ----------------------------------------------------------------------- */

/* Goes back to the last star alone, so that it takes the product of the lengths at most. */
bool pattern_covers(const char *pattern, const char *other)
{
    const char *star = NULL;
    const char *from = NULL;
    while (*other != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            from = other;
        } else if (*pattern == *other || (*pattern == '?' && *other != '*')) {
            pattern++;
            other++;
        } else if (star != NULL) {
            pattern = star + 1;
            other = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static bool key_is_below(const struct grant *g, const char *key, size_t key_len)
{
    return key == NULL || (key_len >= g->prefix_len && memcmp(key, g->prefix, g->prefix_len) == 0);
}

bool grant_gives(const struct grant *g, enum right right, const char *bucket, const char *key,
                 size_t key_len)
{
    if ((g->rights & BIT(CLUSTER_ADMIN)) != 0)
        return true;
    if ((g->rights & right_bit(right)) == 0)
        return false;
    if (g->bucket == NULL || bucket == NULL)
        return g->bucket == NULL && bucket == NULL;
    return key_is_below(g, key, key_len) && pattern_covers(g->bucket, bucket);
}

bool grants_cover(const struct grants *held, const struct grant *other)
{
    for (enum right r = RIGHT_ANY + 1; r < RIGHTS; r++) {
        bool covered = (other->rights & right_bit(r)) == 0;
        for (size_t i = 0; i < held->count && !covered; i++)
            covered =
                grant_gives(&held->items[i], r, other->bucket, other->prefix, other->prefix_len);
        if (!covered)
            return false;
    }
    return true;
}

static bool text_equal(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool grant_equal(const struct grant *a, const struct grant *b)
{
    return a->rights == b->rights && text_equal(a->bucket, b->bucket) &&
           strcmp(a->prefix, b->prefix) == 0;
}

bool grants_equal(const struct grants *a, const struct grants *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (!grant_equal(&a->items[i], &b->items[i]))
            return false;
    }
    return true;
}

void grants_copy(const struct grants *from, struct arena *a, struct grants *out)
{
    *out = (struct grants){.count = from->count};
    out->items = arena_alloc(a, from->count * sizeof out->items[0]);
    for (size_t i = 0; i < from->count; i++) {
        const struct grant *g = &from->items[i];
        out->items[i] = (struct grant){
            .rights = g->rights,
            .bucket = g->bucket != NULL ? arena_strdup(a, g->bucket) : NULL,
            .prefix = arena_strdup(a, g->prefix),
            .prefix_len = g->prefix_len,
        };
    }
}

/* --- JSON ------------------------------------------------------------------------------------- */

json_t *grant_to_json(const struct grant *g)
{
    json_t *rights = json_array();
    for (enum right r = RIGHT_ANY + 1; r < RIGHTS; r++) {
        if ((g->rights & right_bit(r)) != 0)
            json_array_append_new(rights, json_string(right_name(r)));
    }
    json_t *doc = json_pack("{s:o}", "rights", rights);
    if (g->bucket != NULL)
        json_object_set_new(doc, "bucket", json_string(g->bucket));
    if (g->prefix_len > 0)
        json_object_set_new(doc, "prefix", json_string(g->prefix));
    return doc;
}

static int rights_from_json(json_t *array, const char *path, enum right_scope scope, uint32_t *out,
                            struct error *err)
{
    static const char *const of[] = {[RIGHT_SCOPE_BUCKET] = "buckets",
                                     [RIGHT_SCOPE_CLUSTER] = "the cluster (without \"bucket\")"};
    if (json_array_size(array) == 0)
        return error_set(err, E_INVALID, "field '%s.rights' must name at least one right", path);
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *name = json_string_value(json_array_get(array, i));
        if (name == NULL)
            return error_set(err, E_JSON, "field '%s.rights[%zu]' must be a string", path, i);
        enum right r = right_parse(scope, name);
        if (r == RIGHT_UNSET) {
            _cleanup_free_ char *names = right_names(scope);
            return error_set(err, E_INVALID,
                             "field '%s.rights': '%.32s' is no right on %s; expected %s", path,
                             name, of[scope], names);
        }
        *out |= right_bit(r);
    }
    return 0;
}

static bool pattern_is_valid(const char *pattern)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_.-*?";
    size_t len = strlen(pattern);
    return len > 0 && len <= PATTERN_MAX && strspn(pattern, allowed) == len;
}

static int place_check(const char *bucket, const char *prefix, const char *path, struct error *err)
{
    if (bucket != NULL && !pattern_is_valid(bucket))
        return error_set(err, E_INVALID,
                         "field '%s.bucket' must have 1 to %d characters of a bucket's name, '*' "
                         "or '?'",
                         path, PATTERN_MAX);
    if (strlen(prefix) > PREFIX_MAX)
        return error_set(err, E_INVALID, "field '%s.prefix' is longer than %d bytes", path,
                         PREFIX_MAX);
    if (bucket == NULL && prefix[0] != '\0')
        return error_set(err, E_INVALID, "field '%s.prefix' needs a 'bucket'", path);
    return 0;
}

int grant_from_json(json_t *doc, const char *path, struct arena *a, struct grant *out,
                    struct error *err)
{
    const char *bucket = NULL;
    const char *prefix = "";
    json_t *rights = NULL;
    int r;
    *out = (struct grant){0};
    if ((r = json_get_array(doc, path, "rights", &rights, err)) != 0 ||
        (r = json_get_str(doc, path, "bucket", &bucket, err)) != 0 ||
        (r = json_get_str(doc, path, "prefix", &prefix, err)) != 0 ||
        (r = place_check(bucket, prefix, path, err)) != 0 ||
        (r = rights_from_json(rights, path,
                              bucket != NULL ? RIGHT_SCOPE_BUCKET : RIGHT_SCOPE_CLUSTER,
                              &out->rights, err)) != 0)
        return r;
    out->bucket = bucket != NULL ? arena_strdup(a, bucket) : NULL;
    out->prefix = arena_strdup(a, prefix);
    out->prefix_len = strlen(prefix);
    return 0;
}

json_t *grants_to_json(const struct grants *g)
{
    json_t *array = json_array();
    for (size_t i = 0; i < g->count; i++)
        json_array_append_new(array, grant_to_json(&g->items[i]));
    return array;
}

static bool grants_have(const struct grants *g, const struct grant *one)
{
    for (size_t i = 0; i < g->count; i++) {
        if (grant_equal(&g->items[i], one))
            return true;
    }
    return false;
}

int grants_from_json(json_t *doc, const char *path, struct arena *a, struct grants *out,
                     struct error *err)
{
    char array[64];
    json_t *items = NULL;
    int r = json_get_array(doc, path, "grants", &items, err);
    if (r != 0)
        return r;
    snprintf(array, sizeof array, "%.40s.grants", path);
    if (json_array_size(items) > GRANTS_MAX)
        return error_set(err, E_INVALID, "field '%s' has more than %d items", array, GRANTS_MAX);
    *out = (struct grants){.items = arena_alloc(a, json_array_size(items) * sizeof *out->items)};
    for (size_t i = 0; i < json_array_size(items); i++) {
        char item_path[64];
        json_t *item;
        struct grant g;
        if ((r = json_item(items, array, i, &item, item_path, err)) != 0 ||
            (r = grant_from_json(item, item_path, a, &g, err)) != 0)
            return r;
        if (grants_have(out, &g))
            return error_set(err, E_INVALID, "field '%s' is there twice", item_path);
        out->items[out->count++] = g;
    }
    return 0;
}
