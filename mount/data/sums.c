#include "mount/data/sums.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "common/log.h"
#include "common/mem.h"

struct compare {
    const struct entity *entity;
    const struct dfc_sink *sink;
    uint64_t from, to;  /* what the caller wants */
    uint64_t begin, at; /* begin: of the first part; at: of the part that comes now */
    size_t have;
    bool differs;
    char part[]; /* of the entity's size of a part */
};

static size_t part_size(const struct compare *c)
{
    const uint64_t left = c->entity->size - c->at;
    const size_t part = entity_part(c->entity);
    return left < part ? (size_t)left : part;
}

/* A part is whole. */
static int give_on(struct compare *c)
{
    const uint64_t end = c->at + c->have;
    const uint64_t from = c->at > c->from ? c->at : c->from;
    const uint64_t to = end < c->to ? end : c->to;
    if (XXH3_64bits(c->part, c->have) != c->entity->sums[c->at / entity_part(c->entity)]) {
        c->differs = true;
        errno = EIO;
        return -1;
    }
    if (from < to &&
        c->sink->write(c->sink->context, c->part + (from - c->at), (size_t)(to - from)) != 0)
        return -1;
    c->at = end;
    c->have = 0;
    return 0;
}

static int compare_write(void *context, const void *data, size_t size)
{
    struct compare *c = context;
    for (const char *from = data; size > 0;) {
        size_t room = part_size(c) - c->have;
        size_t n = size < room ? size : room;
        if (n == 0) { /* more than the entity has */
            errno = EIO;
            return -1;
        }
        memcpy(c->part + c->have, from, n);
        c->have += n;
        from += n;
        size -= n;
        if (c->have == part_size(c) && give_on(c) != 0)
            return -1;
    }
    return 0;
}

static int compare_rewind(void *context)
{
    struct compare *c = context;
    c->at = c->begin;
    c->have = 0;
    return c->sink->rewind(c->sink->context);
}

static int fetch_rest(const struct data_store *store, struct compare *c)
{
    const size_t part = entity_part(c->entity);
    const uint64_t parts = (c->to + part - 1) / part;
    const uint64_t end = parts * part < c->entity->size ? parts * part : c->entity->size;
    const bool whole = c->at == 0 && end == c->entity->size && c->sink->rewind != NULL;
    const struct dfc_sink sink = {
        .write = compare_write,
        .rewind = whole ? compare_rewind : NULL,
        .context = c,
    };
    c->begin = c->at;
    c->have = 0;
    c->differs = false;
    return store->fetch(store->context, c->entity, c->at, end - c->at, &sink);
}

int sums_fetch(void *context, const struct entity *e, uint64_t offset, uint64_t length,
               const struct dfc_sink *sink)
{
    const struct sums *s = context;
    if (e->sums == NULL)
        return s->from.fetch(s->from.context, e, offset, length, sink);
    const size_t part = entity_part(e);
    _cleanup_free_ struct compare *c = xmalloc(sizeof *c + part);
    c->entity = e;
    c->sink = sink;
    c->from = offset;
    c->to = offset + length;
    c->at = offset / part * part;
    int rc = fetch_rest(&s->from, c);
    if (rc != 0 && c->differs) {
        if (s->differs != NULL)
            s->differs(s->from.context, e, c->at);
        rc = fetch_rest(s->again.fetch != NULL ? &s->again : &s->from, c);
    }
    if (rc != 0 && c->differs)
        log_error("the bytes of a block differ from their sum: restore the object, or the files "
                  "that have it",
                  lstr("object", e->key), lu64("offset", c->at));
    return rc != 0 && c->differs ? -EIO : rc;
}
