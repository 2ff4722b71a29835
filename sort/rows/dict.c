#include "sort/rows/dict.h"

#include <assert.h>

#include "common/mem.h"
#include "sort/spec/spec.h"

#define NAME_MAX_BYTES 1024

struct dict {
    struct arena *names;
    struct dict_entry *entries;
    size_t count, cap;
};

struct dict *dict_new(void)
{
    struct dict *d = xcalloc(1, sizeof *d);
    d->names = arena_new(4096);
    return d;
}

void dict_free(struct dict *d)
{
    if (d == NULL)
        return;
    arena_free(d->names);
    free(d->entries);
    free(d);
}

static struct dict_entry *dict_append(struct dict *d)
{
    if (d->count == d->cap) {
        d->cap = d->cap == 0 ? 16 : 2 * d->cap;
        d->entries = xrealloc(d->entries, d->cap * sizeof *d->entries);
    }
    return &d->entries[d->count++];
}

void dict_add(struct dict *d, const struct dict_entry *e)
{
    struct dict_entry *own = dict_append(d);
    *own = *e;
    own->name = arena_strdup(d->names, e->name);
}

uint32_t dict_count(const struct dict *d)
{
    return (uint32_t)d->count;
}

const struct dict_entry *dict_entry(const struct dict *d, uint32_t number)
{
    assert(number < d->count);
    return &d->entries[number];
}

static int compare_entries(const struct dict_entry *a, const struct dict_entry *b)
{
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int sort_entries(const void *a, const void *b)
{
    return compare_entries(a, b);
}

static int dict_check_order(const struct dict *d, struct error *err)
{
    for (size_t i = 1; i < d->count; i++) {
        int c = compare_entries(&d->entries[i - 1], &d->entries[i]);
        if (c == 0)
            return error_set(err, E_CORRUPT, "shard '%s' is in two tables", d->entries[i].name);
        if (c > 0)
            return error_set(err, E_CORRUPT, "shard '%s' of a table is out of order",
                             d->entries[i].name);
    }
    return 0;
}

int dict_sort(struct dict *d, struct error *err)
{
    if (d->count > 1)
        qsort(d->entries, d->count, sizeof *d->entries, sort_entries);
    return dict_check_order(d, err);
}

/* The sorted dictionaries are merged by hand, since their old numbers matter. */
struct cursor {
    const struct dict *dict;
    uint32_t next;
    uint32_t *map;
};

static struct cursor *first_cursor(struct cursor *cursors, size_t count)
{
    struct cursor *first = NULL;
    for (size_t i = 0; i < count; i++) {
        struct cursor *c = &cursors[i];
        if (c->next == c->dict->count)
            continue;
        if (first == NULL ||
            compare_entries(&c->dict->entries[c->next], &first->dict->entries[first->next]) < 0)
            first = c;
    }
    return first;
}

int dict_merge(const struct dict *const *dicts, size_t count, struct dict **out, uint32_t **maps,
               struct error *err)
{
    _cleanup_free_ struct cursor *cursors = xcalloc(count, sizeof *cursors);
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        maps[i] = xcalloc(dicts[i]->count + 1, sizeof **maps);
        cursors[i] = (struct cursor){.dict = dicts[i], .map = maps[i]};
        total += dicts[i]->count;
    }
    *out = dict_new();
    if (total > SORT_SHARDS_MAX)
        return error_set(err, E_SPEC, "the request has %zu input shards; the limit is %u", total,
                         SORT_SHARDS_MAX);
    for (struct cursor *c; (c = first_cursor(cursors, count)) != NULL; c->next++) {
        c->map[c->next] = (uint32_t)(*out)->count;
        dict_add(*out, &c->dict->entries[c->next]);
    }
    return dict_check_order(*out, err);
}

int dict_write(const struct dict *d, struct encoder *e, struct error *err)
{
    int rc = encoder_put_varint(e, d->count, err);
    for (size_t i = 0; rc == 0 && i < d->count; i++) {
        const struct dict_entry *entry = &d->entries[i];
        size_t len = strlen(entry->name);
        rc = encoder_put_varint(e, entry->place, err);
        if (rc == 0)
            rc = encoder_put_varint(e, entry->owner, err);
        if (rc == 0)
            rc = encoder_put_varint(e, entry->local, err);
        if (rc == 0)
            rc = encoder_put_varint(e, len, err);
        if (rc == 0)
            rc = encoder_put(e, entry->name, len, err);
    }
    return rc;
}

static int entry_read(struct decoder *d, unsigned participants, struct dict *into,
                      struct error *err)
{
    char name[NAME_MAX_BYTES + 1];
    uint64_t place = 0;
    uint64_t owner = 0;
    uint64_t local = 0;
    uint64_t len = 0;
    int rc = decoder_get_varint(d, &place, err);
    if (rc == 0)
        rc = decoder_get_bounded(d, participants - 1, "a shard's target", &owner, err);
    if (rc == 0)
        rc = decoder_get_bounded(d, SORT_SHARDS_MAX - 1, "a shard's number", &local, err);
    if (rc == 0)
        rc = decoder_get_bounded(d, NAME_MAX_BYTES, "the length of a shard's name", &len, err);
    if (rc == 0)
        rc = decoder_get(d, name, (size_t)len, err);
    if (rc != 0)
        return rc;
    name[len] = '\0';
    if (len == 0 || strlen(name) != len)
        return error_set(err, E_CORRUPT, "a shard's name is empty or has a NUL in it");
    dict_add(into,
             &(struct dict_entry){
                 .name = name, .place = place, .owner = (uint32_t)owner, .local = (uint32_t)local});
    return 0;
}

int dict_read(struct decoder *d, unsigned participants, struct dict **out, struct error *err)
{
    uint64_t count = 0;
    int rc = decoder_get_bounded(d, SORT_SHARDS_MAX, "the number of shards", &count, err);
    if (rc != 0)
        return rc;
    _cleanup_(dict_freep)
    struct dict *dict = dict_new();
    for (uint64_t i = 0; i < count; i++) {
        rc = entry_read(d, participants, dict, err);
        if (rc != 0)
            return rc;
    }
    rc = dict_check_order(dict, err);
    if (rc == 0)
        *out = steal(dict);
    return rc;
}
