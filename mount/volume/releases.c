#include "mount/volume/releases.h"

#include <stdlib.h>

#include "common/mem.h"
#include "mount/volume/steps.h"

void releases_done(struct releases *r)
{
    free(r->items);
    *r = (struct releases){0};
}

static struct release *release_of(struct releases *r, uint64_t slice, uint32_t size)
{
    for (size_t i = r->count; i-- > 0;) {
        if (r->items[i].slice == slice)
            return &r->items[i];
    }
    if (r->count == r->room) {
        r->room = r->room > 0 ? 2 * r->room : 16;
        r->items = xrealloc(r->items, r->room * sizeof *r->items);
    }
    r->items[r->count] = (struct release){.slice = slice, .size = size};
    return &r->items[r->count++];
}

void releases_make(struct releases *r, uint64_t slice, uint32_t size)
{
    if (slice != 0)
        release_of(r, slice, size)->made++;
}

void releases_drop(struct releases *r, const struct slice_list *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        const struct slice_entry *e = &entries->entries[i];
        if (e->slice != 0)
            release_of(r, e->slice, e->size)->dropped++;
    }
}

void releases_share(struct releases *r, const struct slice_list *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        const struct slice_entry *e = &entries->entries[i];
        if (e->slice != 0)
            release_of(r, e->slice, e->size)->shared++;
    }
}

int64_t releases_new_bytes(const struct releases *r)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < r->count; i++)
        bytes += r->items[i].made > 0 ? r->items[i].size : 0;
    return bytes;
}

static void put_number(struct txn *t, const struct meta_key *key, int64_t number)
{
    uint8_t bytes[8];
    meta_field_put(bytes, 0, number);
    txn_put(t, key, bytes, sizeof bytes);
}

static void put_garbage(struct txn *t, const struct release *one)
{
    int64_t due_ms = t->now_ns / 1000000 + (int64_t)t->v->format.grace_ms;
    struct meta_key key = meta_key_number(META_GARBAGE, (uint64_t)due_ms, one->slice);
    put_number(t, &key, one->size);
}

/* A slice without a SHARED key has one entry. */
static int64_t apply_old(struct txn *t, const struct release *one, const struct meta_key *key,
                         const struct meta_value *shared)
{
    int64_t left = (shared->found ? meta_field(shared, 0) : 1) - one->dropped;
    if (shared->found)
        txn_expect_equal(t, key, 0, left + one->dropped);
    else
        txn_expect(t, key, shared);
    if (left > 0) {
        txn_add(t, key, 0, -one->dropped);
        return 0;
    }
    if (shared->found)
        txn_delete(t, key);
    put_garbage(t, one);
    return -(int64_t)one->size;
}

static int64_t apply_new(struct txn *t, const struct release *one, const struct meta_key *key)
{
    int64_t left = one->made - one->dropped;
    if (left > 1)
        put_number(t, key, left);
    if (left > 0)
        return one->size;
    put_garbage(t, one); /* written, and hidden by the same call */
    return 0;
}

/* Counts of slices that get more entries; read at once, as a clone has many. */
static int apply_shared(struct releases *r, struct txn *t)
{
    struct meta_item *items = arena_alloc(t->arena, (r->count + 1) * sizeof *items);
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (r->items[i].shared > 0)
            items[count++] =
                (struct meta_item){.key = meta_key_point(META_SHARED, r->items[i].slice)};
    }
    int rc = count > 0 ? txn_read(t, items, count) : 0;
    count = 0;
    for (size_t i = 0; i < r->count && rc == 0; i++) {
        if (r->items[i].shared == 0)
            continue;
        const struct meta_item *item = &items[count++];
        if (item->value.found) {
            txn_expect_at_least(t, &item->key, 0, 1);
            txn_add(t, &item->key, 0, r->items[i].shared);
        } else {
            txn_expect(t, &item->key, &item->value);
            put_number(t, &item->key, 1 + r->items[i].shared);
        }
    }
    return rc;
}

int releases_apply(struct releases *r, struct txn *t)
{
    int rc = apply_shared(r, t);
    if (rc != 0)
        return rc;
    int64_t bytes = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct release *one = &r->items[i];
        struct meta_key key = meta_key_point(META_SHARED, one->slice);
        struct meta_value shared;
        if (one->shared > 0)
            continue;
        if (one->made > 0) {
            bytes += apply_new(t, one, &key);
            continue;
        }
        rc = txn_get(t, &key, &shared);
        if (rc != 0)
            return rc;
        bytes += apply_old(t, one, &key, &shared);
    }
    steps_use(t, 0, bytes);
    return 0;
}
