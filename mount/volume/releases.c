#include "mount/volume/releases.h"

#include <stdlib.h>

#include "common/mem.h"
#include "mount/volume/steps.h"

enum { PAGE = 256 }; /* slices whose counts are read at once */

void releases_done(struct releases *r)
{
    free(r->items);
    *r = (struct releases){0};
}

static struct release *add(struct releases *r, uint64_t slice, uint32_t size)
{
    if (r->count == r->room) {
        r->room = r->room > 0 ? 2 * r->room : 16;
        r->items = xrealloc(r->items, r->room * sizeof *r->items);
    }
    r->items[r->count] = (struct release){.slice = slice, .size = size};
    return &r->items[r->count++];
}

static int by_slice(const void *a, const void *b)
{
    const struct release *one = a, *two = b;
    return one->slice < two->slice ? -1 : one->slice > two->slice;
}

/* Each slice once. */
static void merge(struct releases *r)
{
    size_t kept = 0;
    if (r->count > 0)
        qsort(r->items, r->count, sizeof *r->items, by_slice);
    for (size_t i = 0; i < r->count; i++) {
        const struct release one = r->items[i];
        if (kept == 0 || r->items[kept - 1].slice != one.slice) {
            r->items[kept++] = one;
            continue;
        }
        r->items[kept - 1].made += one.made;
        r->items[kept - 1].dropped += one.dropped;
        r->items[kept - 1].shared += one.shared;
    }
    r->count = kept;
}

void releases_make(struct releases *r, uint64_t slice, uint32_t size)
{
    if (slice != 0)
        add(r, slice, size)->made = 1;
}

void releases_drop(struct releases *r, const struct slice_list *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        const struct slice_entry *e = &entries->entries[i];
        if (e->slice != 0)
            add(r, e->slice, e->size)->dropped = 1;
    }
}

void releases_share(struct releases *r, const struct slice_list *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        const struct slice_entry *e = &entries->entries[i];
        if (e->slice != 0)
            add(r, e->slice, e->size)->shared = 1;
    }
}

int64_t releases_new_bytes(struct releases *r)
{
    int64_t bytes = 0;
    merge(r);
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

static void apply_shared(struct txn *t, const struct release *one, const struct meta_key *key,
                         const struct meta_value *shared)
{
    if (shared->found) {
        txn_expect_at_least(t, key, 0, 1);
        txn_add(t, key, 0, one->shared);
    } else {
        txn_expect(t, key, shared);
        put_number(t, key, 1 + one->shared);
    }
}

/* At most PAGE slices.  The counts of those that are not new are read at once. */
static int apply_page(struct txn *t, const struct release *page, size_t count, int64_t *bytes)
{
    struct meta_item *items = arena_alloc(t->arena, (count + 1) * sizeof *items);
    size_t asked = 0;
    for (size_t i = 0; i < count; i++) {
        if (page[i].made == 0)
            items[asked++] = (struct meta_item){.key = meta_key_point(META_SHARED, page[i].slice)};
    }
    int rc = asked > 0 ? txn_read(t, items, asked) : 0;
    asked = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct release *one = &page[i];
        const struct meta_key key = meta_key_point(META_SHARED, one->slice);
        if (one->made > 0)
            *bytes += apply_new(t, one, &key);
        else if (one->shared > 0)
            apply_shared(t, one, &key, &items[asked++].value);
        else
            *bytes += apply_old(t, one, &key, &items[asked++].value);
    }
    return rc;
}

int releases_apply(struct releases *r, struct txn *t)
{
    int64_t bytes = 0;
    int rc = 0;
    merge(r);
    for (size_t done = 0; done < r->count && rc == 0; done += PAGE) {
        const size_t left = r->count - done;
        rc = apply_page(t, &r->items[done], left < PAGE ? left : PAGE, &bytes);
    }
    if (rc == 0)
        steps_use(t, 0, bytes);
    return rc;
}
