#include "cluster/documents/bmd.h"

#include <stdio.h>
#include <string.h>

#include "cluster/access/user.h"
#include "cluster/base/document.h"
#include "cluster/base/json_items.h"
#include "cluster/documents/names.h"
#include "common/jsonx.h"

static size_t bmd_find(const struct bmd *b, const char *name, bool *found)
{
    return document_find(b->buckets, b->count, sizeof b->buckets[0], offsetof(struct bucket, name),
                         name, found);
}

const struct bucket *bmd_bucket(const struct bmd *b, const char *name)
{
    bool found;
    size_t at = bmd_find(b, name, &found);
    return found ? &b->buckets[at] : NULL;
}

const struct bucket *bmd_bucket_by_id(const struct bmd *b, uint64_t id)
{
    for (size_t i = 0; i < b->count; i++) {
        if (b->buckets[i].id == id)
            return &b->buckets[i];
    }
    return NULL;
}

bool bmd_has_quota(const struct bmd *b, uint64_t id)
{
    const struct bucket *bucket = bmd_bucket_by_id(b, id);
    return bucket != NULL && bucket_props_have_quota(&bucket->props);
}

bool bucket_has_copies(const struct bucket *b)
{
    return b->props.copies > 1 || bucket_has_surplus(b);
}

bool bmd_has_copies(const struct bmd *b)
{
    for (size_t i = 0; i < b->count; i++) {
        if (bucket_has_copies(&b->buckets[i]))
            return true;
    }
    return false;
}

static void bmd_begin(struct bmd *b, uint64_t version, size_t capacity)
{
    *b = (struct bmd){.version = version, .memory = document_new()};
    b->buckets = arena_alloc(document_arena(b->memory), capacity * sizeof b->buckets[0]);
}

/* What its texts point to becomes the arena's. */
static void own_texts(struct bucket *b, struct arena *a)
{
    b->name = arena_strdup(a, b->name);
    if (b->owner != NULL)
        b->owner = arena_strdup(a, b->owner);
    if (b->props.backend != NULL)
        b->props.backend = arena_strdup(a, b->props.backend);
    b->texts = bucket_texts_copy(&b->texts, a);
}

static void bmd_append(void *to, const void *item)
{
    struct bmd *b = to;
    struct bucket *copy = &b->buckets[b->count++];
    *copy = *(const struct bucket *)item;
    own_texts(copy, document_arena(b->memory));
}

const char *bmd_changed(const struct bmd *old, const struct document_change *c, struct bmd *next)
{
    bmd_begin(next, old->version + 1, old->count + c->put_count);
    return document_merge(old->buckets, old->count, sizeof old->buckets[0],
                          offsetof(struct bucket, name), c, bmd_append, next);
}

void bmd_with(const struct bmd *old, const struct bucket *b, struct bmd *next)
{
    const struct document_change c = {.put = b, .put_count = 1};
    (void)bmd_changed(old, &c, next);
}

void bmd_without(const struct bmd *old, const char *name, struct bmd *next)
{
    const struct document_change c = {.drop = &name, .drop_count = 1};
    (void)bmd_changed(old, &c, next);
}

void bmd_renamed(const struct bmd *old, const char *name, const char *new_name, struct bmd *next)
{
    struct bucket renamed = *bmd_bucket(old, name);
    const struct document_change c = {
        .put = &renamed, .put_count = 1, .drop = &name, .drop_count = 1};
    renamed.name = new_name;
    (void)bmd_changed(old, &c, next);
}

json_t *bucket_to_json(const struct bucket *b)
{
    json_t *doc =
        json_pack("{s:I, s:s, s:I, s:o}", "id", (json_int_t)b->id, "name", b->name, "created",
                  (json_int_t)b->created_ms, "props", bucket_props_to_json(&b->props));
    if (b->owner != NULL)
        json_object_set_new(doc, "owner", json_string(b->owner));
    json_t *texts = bucket_texts_to_json(&b->texts);
    if (texts != NULL)
        json_object_set_new(doc, "texts", texts);
    if (b->filled < b->props.copies) {
        json_object_set_new(doc, "filled", json_integer(b->filled));
        json_object_set_new(doc, "raised", json_integer((json_int_t)b->raised));
    }
    if (bucket_has_surplus(b)) {
        json_object_set_new(doc, "lowered_from", json_integer(b->lowered_from));
        json_object_set_new(doc, "lowered", json_integer((json_int_t)b->lowered));
    }
    if (b->closed != 0)
        json_object_set_new(doc, "closed", json_integer((json_int_t)b->closed));
    return doc;
}

/* What others hold in arrays of so many; the rest of bucket_props_check() is for who asks. */
static int check_bounds(const struct bucket_props *p, const char *path, struct error *err)
{
    if (p->copies == 0 || p->copies > COPIES_MAX)
        return error_set(err, E_INVALID, "field '%s.props.copies' must be between 1 and %d", path,
                         COPIES_MAX);
    if (p->ec_data > EC_DATA_SLICES_MAX || p->ec_parity >= COPIES_MAX)
        return error_set(err, E_INVALID,
                         "field '%s.props.ec' has more than %d data slices, or %d of parity", path,
                         EC_DATA_SLICES_MAX, COPIES_MAX - 1);
    return 0;
}

static int filled_from_json(json_t *doc, const char *path, struct bucket *out, struct error *err)
{
    uint64_t filled = out->props.copies;
    int r = json_get_u64(doc, path, "filled", &filled, err);
    if (r == 0)
        r = json_get_u64(doc, path, "raised", &out->raised, err);
    if (r == 0 && (filled == 0 || filled > out->props.copies))
        r = error_set(err, E_INVALID, "field '%s.filled' must be between 1 and its copies", path);
    out->filled = (uint32_t)filled;
    return r;
}

static int lowered_from_json(json_t *doc, const char *path, struct bucket *out, struct error *err)
{
    uint64_t from = 0;
    int r = json_get_u64(doc, path, "lowered_from", &from, err);
    if (r == 0)
        r = json_get_u64(doc, path, "lowered", &out->lowered, err);
    if (r == 0 && from > COPIES_MAX)
        r = error_set(err, E_INVALID, "field '%s.lowered_from' must be at most %d", path,
                      COPIES_MAX);
    out->lowered_from = (uint32_t)from;
    return r;
}

static int texts_from_json(json_t *doc, const char *path, struct bucket *out, struct error *err)
{
    char texts_path[96];
    json_t *texts = NULL;
    int r = json_get_object(doc, path, "texts", &texts, err);
    snprintf(texts_path, sizeof texts_path, "%s.texts", path);
    return r == 0 && texts != NULL ? bucket_texts_patch(texts, texts_path, &out->texts, err) : r;
}

int bucket_from_json(json_t *doc, const char *path, struct arena *a, struct bucket *out,
                     struct error *err)
{
    *out = (struct bucket){.props = BUCKET_PROPS_DEFAULT};
    const char *name;
    json_t *props = NULL;
    int r;
    if ((r = json_need_u64(doc, path, "id", &out->id, err)) != 0 ||
        (r = json_need_str(doc, path, "name", &name, err)) != 0 ||
        (r = json_get_i64(doc, path, "created", &out->created_ms, err)) != 0 ||
        (r = json_get_str(doc, path, "owner", &out->owner, err)) != 0 ||
        (r = json_get_object(doc, path, "props", &props, err)) != 0)
        return r;
    if ((r = bucket_name_check(name, err)) != 0 ||
        (props != NULL && (r = bucket_props_from_json(props, &out->props, err)) != 0)) {
        error_wrap(err, "%s", path);
        return r;
    }
    if ((r = check_bounds(&out->props, path, err)) != 0 ||
        (r = filled_from_json(doc, path, out, err)) != 0 ||
        (r = lowered_from_json(doc, path, out, err)) != 0 ||
        (r = json_get_u64(doc, path, "closed", &out->closed, err)) != 0 ||
        (r = texts_from_json(doc, path, out, err)) != 0)
        return r;
    if (out->owner != NULL && !user_id_is_valid(out->owner))
        return error_set(err, E_INVALID, "field '%s.owner' is no id of a user", path);
    out->name = name;
    own_texts(out, a);
    return 0;
}

json_t *bmd_to_json(const struct bmd *b)
{
    json_t *buckets = json_array();
    for (size_t i = 0; i < b->count; i++)
        json_array_append_new(buckets, bucket_to_json(&b->buckets[i]));
    return json_pack("{s:I, s:o}", "version", (json_int_t)b->version, "buckets", buckets);
}

static int bmd_buckets_from_json(json_t *buckets, struct bmd *out, struct error *err)
{
    for (size_t i = 0; i < json_array_size(buckets); i++) {
        char path[64];
        json_t *item;
        int r = json_item(buckets, "bmd.buckets", i, &item, path, err);
        if (r == 0)
            r = bucket_from_json(item, path, document_arena(out->memory), &out->buckets[i], err);
        if (r != 0)
            return r;
        out->count++;
    }
    const char *twice = document_sort(out->buckets, out->count, sizeof out->buckets[0],
                                      offsetof(struct bucket, name));
    if (twice != NULL)
        return error_set(err, E_JSON, "field 'bmd.buckets' has bucket '%s' twice", twice);
    return 0;
}

int bmd_from_json(json_t *doc, struct bmd *out, struct error *err)
{
    json_t *buckets = NULL;
    uint64_t version;
    int r;
    if ((r = json_need_u64(doc, "bmd", "version", &version, err)) != 0 ||
        (r = json_get_array(doc, "bmd", "buckets", &buckets, err)) != 0 ||
        (r = json_present(buckets, "bmd", "buckets", err)) != 0)
        return r;
    bmd_begin(out, version, json_array_size(buckets));
    return bmd_buckets_from_json(buckets, out, err);
}
