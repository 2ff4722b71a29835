#include "cache/cache.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "cache/files.h"
#include "cache/tier.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "hrw/hrw.h"

#define READ_BYTES (128u << 10) /* at once */
#define WEIGHT_BYTES (1u << 20) /* a directory's weight counts these */

struct cache {
    size_t count;
    struct tier *tiers[CACHE_DIRECTORIES_MOST];
    struct hrw_node nodes[CACHE_DIRECTORIES_MOST];
    metric_t *missed;
    pthread_mutex_t lock;
    struct pace_side store; /* under the lock */
};

/* Of one piece to the tiers, below. */
static int64_t source_read(void *cache, const struct cache_entity *e, uint64_t index,
                           int (*take)(void *context, const void *data, size_t size), void *taker);
static void source_hold(void *cache, const struct cache_entity *e, int by);
static void source_drop(void *cache, const struct cache_entity *e);

/* ---- its life ---- */

/* "A:B": each path, absolute, since the process leaves its directory. */
static int directories_parse(const char *text, char **paths, size_t *count, struct error *err)
{
    char *save = NULL;
    _cleanup_free_ char *copy = xstrdup(text);
    *count = 0;
    for (char *at = strtok_r(copy, ":", &save); at != NULL; at = strtok_r(NULL, ":", &save)) {
        if (*count == CACHE_DIRECTORIES_MOST)
            return error_set(err, E_INVALID, "'%s': at most %d cache directories", text,
                             CACHE_DIRECTORIES_MOST);
        paths[*count] = realpath(at, NULL);
        if (paths[*count] == NULL && errno == ENOENT)
            return error_set(err, E_INVALID, "cache directory '%s': make the directory first", at);
        if (paths[*count] == NULL)
            return error_errno(err, errno, "cache directory '%s'", at);
        ++*count;
    }
    return *count > 0 ? 0 : error_set(err, E_INVALID, "'%s' names no directory", text);
}

static int weights_find(char *const *paths, size_t count, uint64_t *weights, struct error *err)
{
    struct statvfs st;
    for (size_t i = 0; i < count; i++) {
        if (statvfs(paths[i], &st) != 0)
            return error_errno(err, errno, "cache directory '%s'", paths[i]);
        uint64_t units = (uint64_t)st.f_blocks * st.f_frsize / WEIGHT_BYTES;
        weights[i] = units == 0 ? 1 : units < UINT32_MAX ? units : UINT32_MAX;
    }
    return 0;
}

static int tiers_open(struct cache *c, const struct cache_options *o, char *const *paths,
                      size_t count, struct error *err)
{
    uint64_t weights[CACHE_DIRECTORIES_MOST], sum = 0;
    int rc = weights_find(paths, count, weights, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        sum += weights[i];
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct tier_options tier = {
            .directory = paths[i],
            .limit_bytes = (uint64_t)((double)o->bytes * ((double)weights[i] / (double)sum)),
            .free_percent = (unsigned)o->free_percent,
            .idle_ms = o->idle_ms,
            .fill_bytes = o->fill_bytes / count,
            .source = {c, source_read, source_hold, source_drop},
        };
        c->nodes[i] = (struct hrw_node){
            .seed = hrw_seed(paths[i]),
            .weight = (uint32_t)weights[i],
        };
        rc = tier_open(&tier, &c->tiers[i], err);
        c->count += rc == 0;
    }
    return rc;
}

int cache_open(const struct cache_options *options, struct cache **out, struct error *err)
{
    char *paths[CACHE_DIRECTORIES_MOST];
    size_t count;
    _cleanup_(cache_closep)
    struct cache *c = xcalloc(1, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    c->missed = metric_get(M_cache_missed_bytes_total, NULL);
    int rc = directories_parse(options->directories, paths, &count, err);
    if (rc == 0)
        rc = tiers_open(c, options, paths, count, err);
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    if (rc == 0)
        *out = steal(c);
    return rc;
}

char *cache_usable(const char *directories)
{
    char *save = NULL, *usable = NULL;
    _cleanup_free_ char *copy = xstrdup(directories);
    for (char *at = strtok_r(copy, ":", &save); at != NULL; at = strtok_r(NULL, ":", &save)) {
        struct files *f;
        struct error err = ERROR_INIT;
        if (files_open(at, &f, &err) != 0) {
            log_warn("cache directory is not used", lstr("directory", at),
                     lstr("error", err.message));
            continue;
        }
        files_close(f);
        _cleanup_free_ char *before = usable;
        usable = before == NULL ? xstrdup(at) : xprintf("%s:%s", before, at);
    }
    return usable;
}

void cache_close(struct cache *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->count; i++)
        tier_stop(c->tiers[i]); /* they read each other */
    for (size_t i = 0; i < c->count; i++)
        tier_close(c->tiers[i]);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ---- placement ---- */

/* NULL: no directory is used any more. */
static struct tier *tier_of(struct cache *c, const struct piece_id *id)
{
    size_t ranked[CACHE_DIRECTORIES_MOST];
    if (c->count == 1)
        return tier_is_out(c->tiers[0]) ? NULL : c->tiers[0];
    size_t n = hrw_rank(piece_id_hash(id), c->nodes, c->count, c->count, ranked);
    for (size_t i = 0; i < n; i++) {
        if (!tier_is_out(c->tiers[ranked[i]]))
            return c->tiers[ranked[i]];
    }
    return NULL;
}

/* The directory that has the entity in one file, or may have it; NULL: none. */
static struct tier *whole_tier(struct cache *c, const struct cache_entity *e)
{
    if (e->size <= PIECE_BYTES)
        return NULL;
    const struct piece whole = piece_whole(e);
    struct tier *t = tier_of(c, &whole.id);
    return t != NULL && tier_may_have(t, &whole.id) ? t : NULL;
}

static bool has_whole(struct cache *c, const struct cache_entity *e)
{
    const struct piece whole = piece_whole(e);
    struct tier *t = whole_tier(c, e);
    return t != NULL && tier_knows(t, &whole.id);
}

static struct piece piece_at(const struct cache_span *s)
{
    struct piece p = piece_of(s->entity, s->offset / PIECE_BYTES);
    assert(s->offset % PIECE_BYTES + s->size <= p.size);
    return p;
}

static struct pace_side store_now(struct cache *c)
{
    pthread_mutex_lock(&c->lock);
    struct pace_side store = c->store;
    pthread_mutex_unlock(&c->lock);
    return store;
}

/* ---- reading ---- */

struct reading {
    struct tier *tier;
    struct piece piece;
    struct files_piece found;
    uint64_t us; /* of the disk */
    int (*take)(void *context, const void *data, size_t size);
    void *context;
};

static int read_part(struct reading *r, size_t offset, size_t size, void *to)
{
    uint64_t begun_us = clock_us();
    int rc = tier_read(r->tier, &r->found, &r->piece, offset, size, to);
    r->us += clock_us() - begun_us;
    return rc;
}

static int64_t read_found(struct reading *r, size_t offset, size_t size)
{
    size_t done = 0;
    int rc = 0;
    char data[READ_BYTES]; /* of the stack: so much of malloc() would be new pages each time */
    while (rc == 0 && done < size) {
        size_t n = size - done < READ_BYTES ? size - done : READ_BYTES;
        if (read_part(r, offset + done, n, data) != 0)
            break;
        rc = r->take(r->context, data, n);
        done += rc == 0 ? n : 0;
    }
    return rc == 0 ? (int64_t)done : rc;
}

/* store: NULL: for a copy. */
static bool find_in(struct reading *r, struct tier *t, const struct pace_side *store,
                    int (*find)(struct tier *t, const struct piece *p, struct files_piece *found))
{
    r->tier = t;
    if (t == NULL || !(store != NULL ? tier_may_read(t, store) : tier_may_copy(t)))
        return false;
    return find(t, &r->piece, &r->found) == 0;
}

/* In the whole, or as a piece; a whole that is new takes the place of its pieces. */
static bool find(struct cache *c, struct reading *r, const struct pace_side *store)
{
    const struct cache_entity *e = r->piece.entity;
    return find_in(r, whole_tier(c, e), store, tier_find_within) ||
           find_in(r, tier_of(c, &r->piece.id), store, tier_find) ||
           find_in(r, whole_tier(c, e), store, tier_find_within);
}

static int64_t read_span(struct cache *c, const struct cache_span *s, struct reading *r)
{
    const struct pace_side store = store_now(c);
    uint64_t begun_us = clock_us();
    if (!find(c, r, &store))
        return 0;
    r->us = clock_us() - begun_us;
    int64_t n = read_found(r, s->offset % PIECE_BYTES, s->size);
    tier_found_close(r->tier, &r->found, &store, r->us);
    return n;
}

int64_t cache_read(struct cache *c, const struct cache_span *s,
                   int (*take)(void *context, const void *data, size_t size), void *context)
{
    struct reading r = {.piece = piece_at(s), .take = take, .context = context};
    int64_t n = read_span(c, s, &r);
    if (n > 0)
        tier_count(r.tier, (uint64_t)n);
    return n;
}

int64_t cache_read_near(struct cache *c, const struct cache_span *s,
                        int (*take)(void *context, const void *data, size_t size), void *context)
{
    const struct piece piece = piece_at(s);
    struct tier *whole = whole_tier(c, s->entity);
    struct tier *t = whole != NULL ? whole : tier_of(c, &piece.id);
    if (t == NULL || !tier_near_begin(t))
        return 0;
    int64_t n = cache_read(c, s, take, context);
    tier_near_end(t);
    return n;
}

/* ---- wholes ---- */

static bool has_pieces(struct cache *c, const struct cache_entity *e)
{
    const uint64_t count = piece_count(e->size);
    for (uint64_t i = 0; i < count; i++) {
        const struct piece p = piece_of(e, i);
        struct tier *t = tier_of(c, &p.id);
        if (t == NULL || !tier_knows(t, &p.id))
            return false;
    }
    return true;
}

int cache_whole(struct cache *c, const struct cache_entity *e)
{
    if (e->size <= PIECE_BYTES)
        return -1;
    const struct piece whole = piece_whole(e);
    struct tier *t = tier_of(c, &whole.id);
    if (t == NULL || !tier_near_begin(t))
        return -1;
    bool is_known;
    int fd = tier_whole(t, &whole, &is_known);
    tier_near_end(t);
    if (fd < 0 && (is_known || has_pieces(c, e)))
        tier_join(t, e);
    return fd;
}

void cache_hold(struct cache *c, const struct cache_entity *e, int by)
{
    const struct piece whole = piece_whole(e);
    struct tier *t = tier_of(c, &whole.id);
    if (t != NULL)
        tier_hold(t, &whole.id, by);
}

static int64_t source_read(void *cache, const struct cache_entity *e, uint64_t index,
                           int (*take)(void *context, const void *data, size_t size), void *taker)
{
    const struct cache_span s = {
        .entity = e, .offset = index * PIECE_BYTES, .size = piece_of(e, index).size};
    struct reading r = {.piece = piece_at(&s), .take = take, .context = taker};
    if (!find(cache, &r, NULL))
        return 0;
    int64_t n = read_found(&r, 0, s.size);
    files_found_close(&r.found); /* no sample of its pace: nobody waits for it */
    return n;
}

static void source_hold(void *cache, const struct cache_entity *e, int by)
{
    const uint64_t count = piece_count(e->size);
    for (uint64_t i = 0; i < count; i++) {
        const struct piece p = piece_of(e, i);
        struct tier *t = tier_of(cache, &p.id);
        if (t != NULL)
            tier_hold(t, &p.id, by);
    }
}

static void source_drop(void *cache, const struct cache_entity *e)
{
    const uint64_t count = piece_count(e->size);
    for (uint64_t i = 0; i < count; i++) {
        const struct piece p = piece_of(e, i);
        struct tier *t = tier_of(cache, &p.id);
        if (t != NULL)
            tier_drop(t, &p);
    }
}

/* ---- what the store gives ---- */

struct cache_fill cache_fill_begin(struct cache *c, const struct cache_span *s, bool insist)
{
    const struct piece piece = piece_at(s);
    struct tier *t = tier_of(c, &piece.id);
    struct tier_fill *fill = NULL;
    if (t != NULL && !has_whole(c, s->entity))
        fill = tier_fill_begin(t, &piece, s->offset % PIECE_BYTES, s->size, insist);
    return (struct cache_fill){
        .data = fill != NULL ? fill->data : NULL,
        .tier = t,
        .fill = fill,
    };
}

void cache_fill_end(struct cache *c, const struct cache_span *s, struct cache_fill *fill, bool good,
                    uint64_t us)
{
    if (fill->fill != NULL)
        tier_fill_end(fill->tier, fill->fill, good);
    *fill = (struct cache_fill){0};
    if (!good)
        return;
    metric_add(c->missed, s->size);
    pthread_mutex_lock(&c->lock);
    pace_note(&c->store, us, clock_ms());
    pthread_mutex_unlock(&c->lock);
}

void cache_put(struct cache *c, const struct cache_span *s, const void *data)
{
    struct cache_fill fill = cache_fill_begin(c, s, false);
    if (fill.fill == NULL)
        return;
    memcpy(fill.data, data, s->size);
    tier_fill_end(fill.tier, fill.fill, true);
}

void cache_flush(struct cache *c)
{
    for (size_t i = 0; i < c->count; i++)
        tier_flush(c->tiers[i]);
}

void cache_damaged(struct cache *c, const struct cache_span *s)
{
    struct tier *whole = whole_tier(c, s->entity);
    const struct piece piece = whole != NULL ? piece_whole(s->entity) : piece_at(s);
    struct tier *t = whole != NULL ? whole : tier_of(c, &piece.id);
    if (t != NULL)
        tier_damaged(t, &piece);
}

/* ---- looking ---- */

uint64_t cache_bytes_of(struct cache *c, const struct cache_entity *e, uint64_t offset,
                        uint64_t size)
{
    uint64_t bytes = 0, end = offset + size < e->size ? offset + size : e->size;
    const struct piece whole = piece_whole(e);
    struct tier *of_whole = whole_tier(c, e);
    if (of_whole != NULL && tier_has(of_whole, &whole.id))
        return end - offset;
    for (uint64_t at = offset; at < end;) {
        struct piece p = piece_of(e, at / PIECE_BYTES);
        uint64_t next = (at / PIECE_BYTES + 1) * PIECE_BYTES;
        struct tier *t = tier_of(c, &p.id);
        if (t != NULL && tier_has(t, &p.id))
            bytes += (next < end ? next : end) - at;
        at = next;
    }
    return bytes;
}
