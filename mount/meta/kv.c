#include "mount/meta/kv.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "common/buf.h"

enum { STAMP = 8 };

struct encoded {
    uint8_t bytes[META_KEY_MAX];
    size_t size;
};

static struct encoded encode(const struct meta_key *key)
{
    struct encoded e;
    e.size = meta_key_encode(key, e.bytes);
    return e;
}

static struct kv_bytes bytes_of(const struct encoded *e)
{
    return (struct kv_bytes){e->bytes, e->size};
}

static int parse(struct kv_bytes stored, struct meta_value *out, struct error *err)
{
    uint64_t little;
    if (stored.size < STAMP)
        return error_set(err, E_CORRUPT, "a stored value has %zu bytes, at least %d are needed",
                         stored.size, STAMP);
    memcpy(&little, stored.data, sizeof little);
    *out = (struct meta_value){
        .found = true,
        .stamp = le64toh(little),
        .data = stored.data + STAMP,
        .size = stored.size - STAMP,
    };
    return 0;
}

/* Until the next call of the engine. */
static int peek(const struct kv *kv, const struct meta_key *key, struct meta_value *out,
                struct error *err)
{
    struct encoded e = encode(key);
    struct kv_bytes stored;
    bool found;
    *out = (struct meta_value){0};
    int rc = kv->ops->get(kv->context, bytes_of(&e), &found, &stored, err);
    return rc != 0 || !found ? rc : parse(stored, out, err);
}

static void keep(struct arena *arena, struct meta_value *value)
{
    uint8_t *copy = arena_bytes(arena, value->size + 1);
    if (value->size > 0)
        memcpy(copy, value->data, value->size);
    value->data = copy;
}

static int get(const struct kv *kv, struct arena *arena, const struct meta_key *key,
               struct meta_value *out, struct error *err)
{
    int rc = peek(kv, key, out, err);
    if (rc == 0 && out->found)
        keep(arena, out);
    return rc;
}

static int follow(const struct kv *kv, struct arena *arena, const struct meta_value *entry,
                  struct meta_value *attr, struct error *err)
{
    *attr = (struct meta_value){0};
    if (!entry->found)
        return 0;
    struct meta_key key = meta_key_point(META_ATTR, meta_entry_inode(entry));
    return get(kv, arena, &key, attr, err);
}

/* ---- pages ---- */

struct page {
    struct encoded prefix; /* rows begin with it */
    struct encoded at;     /* and follow it */
    uint64_t until;        /* greatest id */
};

static int add_row(const struct kv *kv, struct arena *arena, struct meta_item *item,
                   struct meta_row *row, struct error *err)
{
    if (item->count == item->limit) {
        item->more = true;
        return 0;
    }
    item->rows[item->count] = *row;
    struct meta_row *kept = &item->rows[item->count++];
    return row->key.kind == META_ENTRY ? follow(kv, arena, &kept->value, &kept->attr, err) : 0;
}

static int fill_page(const struct kv *kv, struct arena *arena, struct meta_item *item,
                     struct page *p, struct error *err)
{
    item->rows = arena_alloc(arena, (item->limit + 1) * sizeof *item->rows);
    item->count = 0;
    item->more = false;
    while (!item->more) {
        struct kv_bytes next, stored;
        struct meta_row row = {0};
        bool found;
        int rc = kv->ops->next(kv->context, bytes_of(&p->at), &found, &next, &stored, err);
        if (rc != 0)
            return rc;
        if (!found || next.size < p->prefix.size ||
            memcmp(next.data, p->prefix.bytes, p->prefix.size) != 0)
            return 0;
        p->at.size = next.size;
        if (next.size > META_KEY_MAX || !meta_key_decode(next.data, next.size, &row.key))
            return error_set(err, E_CORRUPT, "a key of %zu bytes is no key of this release",
                             next.size);
        memcpy(p->at.bytes, next.data, next.size);
        if (row.key.id > p->until)
            return 0;
        if (row.key.name != NULL)
            row.key.name = arena_strndup(arena, row.key.name, row.key.name_size);
        rc = parse(stored, &row.value, err);
        if (rc != 0)
            return rc;
        keep(arena, &row.value);
        rc = add_row(kv, arena, item, &row, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int page(const struct kv *kv, struct arena *arena, struct meta_item *item, struct error *err)
{
    struct page p = {.until = UINT64_MAX};
    p.prefix.size = meta_kind_shape(item->key.kind) == META_POINT
                        ? meta_key_kind(item->key.kind, p.prefix.bytes)
                        : meta_key_children(item->key.kind, item->key.id, p.prefix.bytes);
    p.at = item->after ? encode(&item->key) : p.prefix;
    return fill_page(kv, arena, item, &p, err);
}

int kv_queue(const struct kv *kv, struct arena *arena, struct meta_item *item, uint64_t until,
             struct error *err)
{
    struct page p = {.until = until};
    assert(meta_kind_shape(item->key.kind) == META_QUEUE);
    p.prefix.size = meta_key_kind(item->key.kind, p.prefix.bytes);
    p.at = p.prefix;
    return fill_page(kv, arena, item, &p, err);
}

/* ---- all rows ---- */

static int visit_kind(const struct kv *kv, enum meta_kind kind, meta_visit *visit, void *context,
                      struct error *err)
{
    struct encoded prefix, at;
    prefix.size = meta_key_kind(kind, prefix.bytes);
    at = prefix;
    for (;;) {
        struct kv_bytes next, stored;
        struct meta_row row = {0};
        bool found;
        int rc = kv->ops->next(kv->context, bytes_of(&at), &found, &next, &stored, err);
        if (rc != 0 || !found || next.data[0] != prefix.bytes[0])
            return rc;
        if (next.size > META_KEY_MAX || !meta_key_decode(next.data, next.size, &row.key))
            return error_set(err, E_CORRUPT, "a key of %zu bytes is no key of this release",
                             next.size);
        rc = parse(stored, &row.value, err);
        if (rc == 0)
            rc = visit(context, &row, err);
        if (rc != 0)
            return rc;
        at.size = next.size;
        memcpy(at.bytes, next.data, next.size);
    }
}

int kv_snapshot(const struct kv *kv, meta_visit *visit, void *context, struct error *err)
{
    int rc = 0;
    for (unsigned kind = 0; kind < META_KINDS && rc == 0; kind++)
        rc = visit_kind(kv, (enum meta_kind)kind, visit, context, err);
    return rc;
}

int kv_read(const struct kv *kv, struct meta_read *r, struct error *err)
{
    for (size_t i = 0; i < r->count; i++) {
        struct meta_item *item = &r->items[i];
        int rc = item->ask == META_PAGE ? page(kv, r->arena, item, err)
                                        : get(kv, r->arena, &item->key, &item->value, err);
        if (rc == 0 && item->ask == META_FOLLOW)
            rc = follow(kv, r->arena, &item->value, &item->attr, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* ---- commits ---- */

static bool has_bytes(const struct meta_value *v, size_t offset, size_t size)
{
    return v->found && v->size >= size && offset <= v->size - size;
}

static bool holds(const struct meta_step *s, const struct meta_value *v)
{
    switch (s->kind) {
    case META_EXPECT_ABSENT:
        return !v->found;
    case META_EXPECT_PRESENT:
        return v->found;
    case META_EXPECT_STAMP:
        return v->found && v->stamp == s->stamp;
    case META_EXPECT_EQUAL:
        return has_bytes(v, s->offset, 8) && meta_field(v, s->offset) == s->number;
    case META_EXPECT_AT_LEAST:
        return has_bytes(v, s->offset, 8) && meta_field(v, s->offset) >= s->number;
    case META_SET:
        return has_bytes(v, s->offset, s->size);
    case META_ADD:
    case META_RAISE:
        return has_bytes(v, s->offset, 8);
    case META_PUT:
    case META_DELETE:
        return true;
    }
    return false;
}

static int store(const struct kv *kv, const struct meta_key *key, uint64_t stamp, const void *data,
                 size_t size, struct error *err)
{
    struct encoded e = encode(key);
    uint64_t little = htole64(stamp);
    _cleanup_buf_ struct buf value = BUF_INIT;
    buf_reserve(&value, sizeof little + size);
    buf_append(&value, &little, sizeof little);
    buf_append(&value, data, size);
    return kv->ops->put(kv->context, bytes_of(&e),
                        (struct kv_bytes){(const uint8_t *)value.data, value.len}, err);
}

static int change_part(const struct kv *kv, const struct meta_step *s, uint64_t stamp,
                       struct error *err)
{
    struct meta_value v;
    int rc = peek(kv, &s->key, &v, err);
    if (rc != 0)
        return rc;
    _cleanup_buf_ struct buf data = BUF_INIT;
    buf_append(&data, v.data, v.size);
    uint8_t *bytes = (uint8_t *)data.data;
    int64_t old = meta_field(&v, s->offset);
    uint64_t kept = v.stamp;
    if (s->kind == META_SET)
        memcpy(bytes + s->offset, s->data, s->size);
    else if (s->kind == META_ADD)
        meta_field_put(bytes, s->offset, (int64_t)((uint64_t)old + (uint64_t)s->number));
    else if (old < s->number)
        meta_field_put(bytes, s->offset, s->number);
    else
        return 0;
    return store(kv, &s->key, s->kind == META_SET ? stamp : kept, bytes, data.len, err);
}

static int change(const struct kv *kv, const struct meta_step *s, uint64_t stamp, struct error *err)
{
    struct encoded e;
    switch (s->kind) {
    case META_PUT:
        return store(kv, &s->key, stamp, s->data, s->size, err);
    case META_DELETE:
        e = encode(&s->key);
        return kv->ops->remove(kv->context, bytes_of(&e), err);
    case META_SET:
    case META_ADD:
    case META_RAISE:
        return change_part(kv, s, stamp, err);
    default:
        return 0;
    }
}

int kv_commit(const struct kv *kv, struct meta_commit *c, uint64_t stamp, struct error *err)
{
    for (size_t i = 0; i < c->count; i++) {
        struct meta_value v;
        int rc = peek(kv, &c->steps[i].key, &v, err);
        if (rc != 0)
            return rc;
        if (!holds(&c->steps[i], &v)) {
            c->conflict = i;
            return error_set(err, E_PRECONDITION, "step %zu on %s %llu: another client was first",
                             i, meta_kind_name(c->steps[i].key.kind),
                             (unsigned long long)c->steps[i].key.id);
        }
    }
    for (size_t i = 0; i < c->count; i++) {
        int rc = change(kv, &c->steps[i], stamp, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}
