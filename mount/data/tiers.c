#include "mount/data/tiers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/metrics.h"

#define SET_DIRECTORIES 2
#define WARM_BYTES (1u << 20) /* of one request to the store */

/* Labels of the bytes that are read. */
static const char of_disk[] = "tier=\"disk\"", of_store[] = "tier=\"store\"";

/* ---- names ---- */

char *tiers_name(const char *scope, const struct entity *e)
{
    _cleanup_free_ char *sums = NULL;
    if (e->sums != NULL)
        sums = xprintf("\n%016" PRIx64, entity_sum(e));
    const char *version = entity_version(e->etag, e->checksum);
    return xprintf("%s\n%s\n%s%s", scope, e->key, version != NULL ? version : "",
                   sums != NULL ? sums : "");
}

char *tiers_set(const char *scope, const char *key)
{
    const char *end = key;
    for (unsigned i = 0; i < SET_DIRECTORIES; i++) {
        const char *slash = strchr(end, '/');
        if (slash == NULL)
            break;
        end = slash + 1;
    }
    return xprintf("%s\n%.*s", scope, (int)(end - key), key);
}

struct named {
    struct cache_entity entity;
    char *name, *set;
};

static struct named named_of(const struct tiers *t, const struct entity *e)
{
    struct named n = {.name = tiers_name(t->scope, e), .set = tiers_set(t->scope, e->key)};
    n.entity = (struct cache_entity){.name = n.name, .set = n.set, .size = e->size};
    return n;
}

static void named_done(struct named *n)
{
    free(n->name);
    free(n->set);
}

/* A weak tag is of bytes that are alike, not equal. */
static bool is_cached(const struct tiers *t, const struct entity *e)
{
    return t->cache != NULL && (e->sums != NULL || entity_version(e->etag, e->checksum) != NULL);
}

static void count(const char *tier, uint64_t bytes)
{
    metric_add(metric_get(M_mount_read_bytes_total, tier), bytes);
}

/* ---- from the store, with a copy for the cache ---- */

struct tee {
    const struct dfc_sink *sink;
    char *copy; /* NULL: none is wanted */
    size_t size, done;
};

static int tee_write(void *context, const void *data, size_t size)
{
    struct tee *t = context;
    if (t->copy != NULL && size <= t->size - t->done)
        memcpy(t->copy + t->done, data, size);
    t->done += size;
    return t->sink->write(t->sink->context, data, size);
}

static int tee_rewind(void *context)
{
    struct tee *t = context;
    t->done = 0;
    return t->sink->rewind(t->sink->context);
}

struct request {
    struct tiers *tiers;
    const struct entity *entity;
    const struct cache_entity *name;
    const struct dfc_sink *sink;
    bool insist; /* the cache is to take it */
};

static int from_store(const struct request *r, uint64_t offset, uint64_t size)
{
    const struct cache_span span = {.entity = r->name, .offset = offset, .size = size};
    struct cache_fill fill = cache_fill_begin(r->tiers->cache, &span, r->insist);
    struct tee tee = {.sink = r->sink, .copy = fill.data, .size = size};
    /* What was given before cannot be taken back. */
    bool whole = offset == 0 && size == r->entity->size && r->sink->rewind != NULL;
    const struct dfc_sink sink = {
        .write = tee_write,
        .rewind = whole ? tee_rewind : NULL,
        .context = &tee,
    };
    const struct data_store *store = &r->tiers->store;
    uint64_t begun_us = clock_us();
    int rc = store->fetch(store->context, r->entity, offset, size, &sink);
    cache_fill_end(r->tiers->cache, &span, &fill, rc == 0 && tee.done == size,
                   clock_us() - begun_us);
    if (rc == 0)
        count(of_store, size);
    return rc;
}

/* ---- from the cache ---- */

static int give(void *context, const void *data, size_t size)
{
    const struct dfc_sink *sink = context;
    return sink->write(sink->context, data, size) == 0 ? 0 : -errno;
}

/* Of one piece. */
static int fetch_span(const struct request *r, uint64_t offset, uint64_t size)
{
    const struct cache_span span = {.entity = r->name, .offset = offset, .size = size};
    int64_t n = cache_read(r->tiers->cache, &span, give, (void *)r->sink);
    if (n > 0)
        count(of_disk, (uint64_t)n);
    if (n < 0 || (uint64_t)n == size)
        return n < 0 ? (int)n : 0;
    return from_store(r, offset + (uint64_t)n, size - (uint64_t)n);
}

static uint64_t span_end(uint64_t offset, uint64_t end, uint64_t most)
{
    uint64_t next = (offset / most + 1) * most;
    return next < end ? next : end;
}

int tiers_fetch(void *tiers, const struct entity *e, uint64_t offset, uint64_t length,
                const struct dfc_sink *sink)
{
    struct tiers *t = tiers;
    int rc = 0;
    if (!is_cached(t, e)) {
        rc = t->store.fetch(t->store.context, e, offset, length, sink);
        if (rc == 0)
            count(of_store, length);
        return rc;
    }
    struct named n = named_of(t, e);
    const struct request r = {.tiers = t, .entity = e, .name = &n.entity, .sink = sink};
    for (uint64_t at = offset, end = offset + length; rc == 0 && at < end;) {
        uint64_t next = span_end(at, end, PIECE_BYTES);
        rc = fetch_span(&r, at, next - at);
        at = next;
    }
    named_done(&n);
    return rc;
}

/* ---- a few bytes of the cache ---- */

struct few {
    uint64_t at, from, to; /* at: of the bytes that come next; [from, to) is wanted */
    char *out;
};

static int few_take(void *context, const void *data, size_t size)
{
    struct few *f = context;
    const uint64_t end = f->at + size;
    const uint64_t from = f->at > f->from ? f->at : f->from;
    const uint64_t to = end < f->to ? end : f->to;
    if (from < to)
        memcpy(f->out + (from - f->from), (const char *)data + (from - f->at), (size_t)(to - from));
    f->at = end;
    return 0;
}

bool tiers_near(void *tiers, const struct entity *e, uint64_t offset, size_t length, void *to)
{
    const struct tiers *t = tiers;
    const uint64_t begin = offset / PIECE_PART * PIECE_PART;
    const uint64_t end = span_end(offset + length - 1, e->size, PIECE_PART);
    struct few few = {.at = begin, .from = offset, .to = offset + length, .out = to};
    if (!is_cached(t, e) || begin / PIECE_BYTES != (end - 1) / PIECE_BYTES)
        return false;
    struct named n = named_of(t, e);
    const struct cache_span span = {.entity = &n.entity, .offset = begin, .size = end - begin};
    const bool has = cache_read_near(t->cache, &span, few_take, &few) == (int64_t)(end - begin);
    if (has)
        count(of_disk, end - begin);
    named_done(&n);
    return has;
}

int tiers_whole(struct tiers *t, const struct entity *e)
{
    if (!is_cached(t, e))
        return -1;
    struct named n = named_of(t, e);
    int fd = cache_whole(t->cache, &n.entity);
    named_done(&n);
    return fd;
}

void tiers_hold(struct tiers *t, const struct entity *e, int by)
{
    if (t->cache == NULL)
        return;
    struct named n = named_of(t, e);
    cache_hold(t->cache, &n.entity, by);
    named_done(&n);
}

/* ---- what was written, what is damaged ---- */

void tiers_put(struct tiers *t, const struct entity *e, const char *data)
{
    if (!is_cached(t, e))
        return;
    struct named n = named_of(t, e);
    for (uint64_t at = 0; at < e->size; at = span_end(at, e->size, PIECE_BYTES)) {
        const struct cache_span span = {
            .entity = &n.entity, .offset = at, .size = span_end(at, e->size, PIECE_BYTES) - at};
        cache_put(t->cache, &span, data + at);
    }
    named_done(&n);
}

void tiers_differ(void *tiers, const struct entity *e, uint64_t offset)
{
    const struct tiers *t = tiers;
    if (!is_cached(t, e))
        return;
    struct named n = named_of(t, e);
    const struct cache_span span = {.entity = &n.entity, .offset = offset};
    cache_damaged(t->cache, &span);
    named_done(&n);
}

/* ---- warming ---- */

/* A piece comes whole: of one that is partly in the cache's hands nothing is known. */
static int warm_piece(const struct request *r, uint64_t offset, uint64_t end)
{
    int rc = 0;
    if (cache_bytes_of(r->tiers->cache, r->name, offset, end - offset) == end - offset)
        return 0;
    for (uint64_t at = offset; rc == 0 && at < end;) {
        uint64_t next = span_end(at, end, WARM_BYTES);
        rc = from_store(r, at, next - at);
        at = next;
    }
    return rc;
}

/* Ranges may end in any order: the last one finds all pieces. */
static void ask_whole(struct tiers *t, const struct cache_entity *e)
{
    int fd = cache_whole(t->cache, e);
    if (fd >= 0)
        close(fd);
}

int tiers_warm(struct tiers *t, const struct entity *e, uint64_t offset, uint64_t length)
{
    if (!is_cached(t, e))
        return -EOPNOTSUPP;
    if (offset >= e->size || length == 0)
        return 0;
    const uint64_t end = length < e->size - offset ? offset + length : e->size;
    struct named n = named_of(t, e);
    const struct request r = {
        .tiers = t, .entity = e, .name = &n.entity, .sink = &data_nothing, .insist = true};
    int rc = 0;
    for (uint64_t at = offset / PIECE_BYTES * PIECE_BYTES; rc == 0 && at < end;) {
        uint64_t next = span_end(at, e->size, PIECE_BYTES);
        rc = warm_piece(&r, at, next);
        at = next;
    }
    cache_flush(t->cache);
    if (t->joins && rc == 0)
        ask_whole(t, &n.entity);
    if (rc == 0 && cache_bytes_of(t->cache, &n.entity, offset, end - offset) < end - offset)
        rc = -ENOSPC;
    named_done(&n);
    return rc;
}

uint64_t tiers_cached(struct tiers *t, const struct entity *e, uint64_t offset, uint64_t length)
{
    if (!is_cached(t, e) || offset >= e->size)
        return 0;
    struct named n = named_of(t, e);
    uint64_t most = e->size - offset;
    uint64_t bytes = cache_bytes_of(t->cache, &n.entity, offset, length < most ? length : most);
    named_done(&n);
    return bytes;
}
