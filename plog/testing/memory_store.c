#include "plog/testing/memory_store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

static size_t place(const struct memory_store *m, const char *name)
{
    size_t from = 0, to = m->count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (strcmp(m->objects[middle]->name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

struct memory_object *memory_store_find(struct memory_store *m, const char *name)
{
    const size_t at = place(m, name);
    return at < m->count && strcmp(m->objects[at]->name, name) == 0 && m->objects[at]->is_there
               ? m->objects[at]
               : NULL;
}

static struct memory_object *make(struct memory_store *m, const char *name)
{
    const size_t at = place(m, name);
    if (at < m->count && strcmp(m->objects[at]->name, name) == 0)
        return m->objects[at];
    assert(m->count < sizeof m->objects / sizeof m->objects[0]);
    memmove(&m->objects[at + 1], &m->objects[at], (m->count - at) * sizeof m->objects[0]);
    m->objects[at] = xcalloc(1, sizeof *m->objects[at]);
    snprintf(m->objects[at]->name, sizeof m->objects[at]->name, "%s", name);
    m->count++;
    return m->objects[at];
}

size_t memory_store_count(const struct memory_store *m, const char *prefix)
{
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++)
        count +=
            m->objects[i]->is_there && strncmp(m->objects[i]->name, prefix, strlen(prefix)) == 0;
    return count;
}

void memory_store_done(struct memory_store *m)
{
    for (size_t i = 0; i < m->count; i++) {
        buf_done(&m->objects[i]->body);
        free(m->objects[i]);
    }
    m->count = 0;
}

/* --- calls ------------------------------------------------------------------------------------ */

enum fate { WORKS, FAILS, FAILS_AFTERWARDS };

static enum fate fate_of(struct memory_store *m)
{
    m->calls++;
    if (m->fails_one_in == 0 || rng_below(&m->rng, m->fails_one_in) != 0)
        return WORKS;
    return rng_below(&m->rng, 2) == 0 ? FAILS : FAILS_AFTERWARDS;
}

static int failed(struct error *err)
{
    return error_set(err, E_IO, "the store failed");
}

static int memory_list(void *ctx, const char *prefix, const char *after, struct plog_names *out,
                       struct error *err)
{
    struct memory_store *m = ctx;
    if (fate_of(m) != WORKS)
        return failed(err);
    for (size_t i = 0; i < m->count; i++) {
        const struct memory_object *o = m->objects[i];
        if (o->is_there && strncmp(o->name, prefix, strlen(prefix)) == 0 &&
            (after == NULL || strcmp(o->name, after) > 0))
            plog_names_add(out, o->name);
    }
    return 0;
}

static void etag_of(const struct memory_object *o, char etag[static PLOG_ETAG_MAX])
{
    snprintf(etag, PLOG_ETAG_MAX, "\"%llu\"", (unsigned long long)o->version);
}

static int memory_get(void *ctx, const char *name, struct buf *body,
                      char etag[static PLOG_ETAG_MAX], struct error *err)
{
    struct memory_store *m = ctx;
    if (fate_of(m) != WORKS)
        return failed(err);
    const struct memory_object *o = memory_store_find(m, name);
    if (o == NULL)
        return error_set(err, E_NOT_FOUND, "'%s' does not exist", name);
    buf_append(body, o->body.data, o->body.len);
    etag_of(o, etag);
    return 0;
}

static int memory_read(void *ctx, const char *name, void *out, size_t len, uint64_t offset,
                       struct error *err)
{
    struct memory_store *m = ctx;
    if (fate_of(m) != WORKS)
        return failed(err);
    const struct memory_object *o = memory_store_find(m, name);
    if (o == NULL)
        return error_set(err, E_NOT_FOUND, "'%s' does not exist", name);
    if (offset > o->body.len || len > o->body.len - offset)
        return error_set(err, E_CORRUPT, "'%s' is too short", name);
    memcpy(out, o->body.data + offset, len);
    return 0;
}

static int check(const struct memory_object *o, const char *if_match)
{
    char etag[PLOG_ETAG_MAX];
    if (if_match == NULL)
        return 0;
    if (strcmp(if_match, PLOG_ABSENT) == 0)
        return o->is_there ? E_PRECONDITION : 0;
    if (!o->is_there)
        return E_NOT_FOUND;
    etag_of(o, etag);
    return strcmp(etag, if_match) == 0 ? 0 : E_PRECONDITION;
}

static int memory_put(void *ctx, const char *name, const void *body, size_t len,
                      const char *if_match, char etag[static PLOG_ETAG_MAX], struct error *err)
{
    struct memory_store *m = ctx;
    const enum fate fate = fate_of(m);
    if (fate == FAILS)
        return failed(err);
    struct memory_object *o = make(m, name);
    const int code = check(o, if_match);
    if (code != 0)
        return error_set(err, code, "'%s' is another version", name);
    buf_clear(&o->body);
    buf_append(&o->body, body, len);
    o->version = ++m->versions;
    o->is_there = true;
    etag_of(o, etag);
    return fate == WORKS ? 0 : failed(err);
}

static int memory_remove(void *ctx, const char *name, const char *if_match, struct error *err)
{
    struct memory_store *m = ctx;
    const enum fate fate = fate_of(m);
    if (fate == FAILS)
        return failed(err);
    struct memory_object *o = memory_store_find(m, name);
    const int code = o == NULL ? E_NOT_FOUND : check(o, if_match);
    if (code != 0)
        return error_set(err, code, "'%s' is absent, or another version", name);
    o->is_there = false;
    return fate == WORKS ? 0 : failed(err);
}

static int memory_ends(void *ctx, const struct plog_names *segments, struct plog_map *map,
                       struct error *err)
{
    struct memory_store *m = ctx;
    if (fate_of(m) != WORKS)
        return failed(err);
    for (size_t i = 0; i < segments->count; i++) {
        const struct memory_object *o = memory_store_find(m, segments->items[i]);
        struct plog_footer f;
        if (o == NULL)
            return error_set(err, E_NOT_FOUND, "'%s' does not exist", segments->items[i]);
        const uint8_t *bytes = (const uint8_t *)o->body.data;
        int code = plog_footer_parse(bytes + o->body.len - PLOG_FOOTER, &f, err);
        if (code == 0)
            code = plog_map_add(map, &f, bytes + f.name.bytes, err);
        if (code != 0)
            return code;
    }
    return 0;
}

uint64_t memory_store_clock(void *ctx)
{
    struct memory_store *m = ctx;
    return ++m->clock_ms;
}

static uint64_t memory_random(void *ctx)
{
    struct memory_store *m = ctx;
    return rng_next(&m->rng);
}

struct plog_store memory_store_of(struct memory_store *m)
{
    return (struct plog_store){.ctx = m,
                               .list = memory_list,
                               .get = memory_get,
                               .read = memory_read,
                               .put = memory_put,
                               .remove = memory_remove,
                               .ends = memory_ends,
                               .now_ms = memory_store_clock,
                               .random = memory_random};
}
