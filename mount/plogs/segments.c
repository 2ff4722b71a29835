#include "mount/plogs/segments.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "api/failure.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "mount/bucket/errors.h"
#include "mount/data/sums.h"
#include "mount/data/tiers.h"

enum {
    SLOTS = 4096,
    PART = 1 << 20,   /* bytes of a segment that have a sum */
    SHARE_OF = 5,     /* four fifths of the buffer are for what is read ahead */
    RECENT = 1024,    /* with so many objects at once, nothing is read ahead */
    RECENT_MS = 5000, /* that were read no longer ago */
};

_Static_assert(PART % ENTITY_BLOCK == 0, "a part is some blocks");

/* An object of which bytes were read. */
struct known {
    struct entity *entity;
    struct readahead readahead;
    uint64_t used_ms;
    size_t slot;
    struct known *chain;         /* of the slot */
    struct known *newer, *older; /* by use */
};

struct segments {
    uint64_t readahead_bytes, ahead_bytes; /* of one object; of all of them together */
    struct tiers tiers;
    struct sums sums;
    struct buffer *buffer;
    pthread_mutex_t lock; /* guards all below; taken before the buffer's */
    size_t count;
    struct known *slots[SLOTS];
    struct known *newest, *oldest;
};

/* What an entity must be. */
struct wanted {
    const char *key, *etag;
    uint64_t size;
    const uint8_t *sums; /* NULL: it has none */
};

/* ---- the table, with its lock ---- */

static void list_add(struct segments *s, struct known *k)
{
    k->newer = NULL;
    k->older = s->newest;
    *(s->newest != NULL ? &s->newest->newer : &s->oldest) = k;
    s->newest = k;
}

static void list_remove(struct segments *s, struct known *k)
{
    *(k->newer != NULL ? &k->newer->older : &s->newest) = k->older;
    *(k->older != NULL ? &k->older->newer : &s->oldest) = k->newer;
}

/* Its blocks leave the buffer when they are the oldest. */
static void forget(struct segments *s, struct known *k)
{
    struct known **at = &s->slots[k->slot];
    while (*at != k)
        at = &(*at)->chain;
    *at = k->chain;
    list_remove(s, k);
    s->count--;
    entity_unref(k->entity);
    free(k);
}

static uint64_t sum_at(const uint8_t *sums, size_t i)
{
    uint64_t sum;
    memcpy(&sum, sums + i * sizeof sum, sizeof sum);
    return le64toh(sum);
}

static struct entity *make(const struct wanted *w)
{
    struct entity *e = entity_new(w->key, w->etag, "", w->size);
    if (w->sums == NULL)
        return e;
    e->part = PART;
    const size_t count = entity_sums(e);
    _cleanup_free_ uint64_t *sums = xcalloc(count + 1, sizeof *sums);
    for (size_t i = 0; i < count; i++)
        sums[i] = sum_at(w->sums, i);
    entity_set_sums(e, sums);
    return e;
}

/* The sums of the bytes in the span tell: a restored backup may have other ones. */
static bool is_same(const struct entity *e, const struct wanted *w, struct span s)
{
    bool same = e->size == w->size && strcmp(e->etag, w->etag) == 0 &&
                (e->sums != NULL) == (w->sums != NULL);
    for (uint64_t i = s.from / PART; same && w->sums != NULL && i * PART < s.to; i++)
        same = e->sums[i] == sum_at(w->sums, (size_t)i);
    return same;
}

static struct known *find(struct segments *s, const struct wanted *w, struct span span)
{
    const size_t slot = XXH3_64bits(w->key, strlen(w->key)) % SLOTS;
    struct known *k = s->slots[slot];
    while (k != NULL && strcmp(k->entity->key, w->key) != 0)
        k = k->chain;
    if (k != NULL && is_same(k->entity, w, span)) {
        list_remove(s, k);
        list_add(s, k);
        return k;
    }
    if (k != NULL)
        forget(s, k);
    else if (s->count == SEGMENTS_MOST)
        forget(s, s->oldest);
    k = xcalloc(1, sizeof *k);
    k->entity = make(w);
    k->slot = slot;
    k->chain = s->slots[slot];
    s->slots[slot] = k;
    s->count++;
    list_add(s, k);
    return k;
}

/* ---- read-ahead ---- */

static bool is_ahead(const struct known *k)
{
    for (size_t i = 0; i < READAHEAD_STREAMS; i++) {
        if (k->readahead.streams[i].ahead > k->readahead.streams[i].next)
            return true;
    }
    return false;
}

/* What is read ahead of several objects must be used before it leaves the buffer: they share it.
 * Of a share, the part that is read now and the one that the window ends in are fetched whole. */
static uint64_t window_of(const struct segments *s, uint64_t now_ms)
{
    uint64_t objects = 0, streams = 0;
    for (const struct known *k = s->newest; k != NULL && now_ms - k->used_ms < RECENT_MS;
         k = k->older) {
        if (objects++ == RECENT)
            return 0;
        streams += is_ahead(k);
    }
    /* Of those that are not read ahead, each keeps the part that it is at. */
    const uint64_t parts = (objects - streams) * PART;
    const uint64_t room = s->ahead_bytes > parts ? s->ahead_bytes - parts : 0;
    const uint64_t share = room / (streams + 1); /* this object may begin */
    const uint64_t window = share < 3 * PART ? 0 : share - 2 * PART;
    return window < s->readahead_bytes ? window : s->readahead_bytes;
}

/* Of an entity with sums whole parts are fetched: they are compared whole. */
static struct span whole(const struct entity *e, struct span s)
{
    const size_t part = entity_part(e);
    if (s.from == s.to)
        return s;
    s.from = s.from / part * part;
    s.to = (s.to + part - 1) / part * part;
    s.to = s.to < e->size ? s.to : e->size;
    return s;
}

static int read_wanted(struct segments *s, const struct wanted *w, void *to, struct span span)
{
    const uint64_t size = span.to - span.from;
    assert(span.from <= w->size && size <= w->size - span.from);
    pthread_mutex_lock(&s->lock);
    const uint64_t now_ms = clock_ms(); /* with the lock: no object is used later than now */
    struct known *k = find(s, w, span);
    k->used_ms = now_ms;
    const struct span ahead =
        readahead_read(&k->readahead, span.from, size, w->size, window_of(s, now_ms));
    struct entity *e = entity_ref(k->entity);
    pthread_mutex_unlock(&s->lock);
    const struct buffer_read r = {.entity = e, .offset = span.from, .size = (size_t)size};
    buffer_request(s->buffer, e, whole(e, span), whole(e, ahead));
    const int rc = buffer_read(s->buffer, &r, to);
    entity_unref(e);
    return rc;
}

/* ---- reading ---- */

/* As libdfc would say it. */
static int told(int rc, const struct dfc_plog_segment *g, struct dfc_error *err)
{
    static const struct {
        int rc;
        enum dfc_result result;
        int code;
    } rows[] = {{-ENOENT, DFC_NOT_FOUND, E_OBJECT_NOT_FOUND},
                {-ESTALE, DFC_NOT_FOUND, E_BUCKET_NOT_FOUND},
                {-EACCES, DFC_DENIED, E_ACCESS_DENIED},
                {-ETIMEDOUT, DFC_TIMED_OUT, E_TIMEOUT}};
    enum dfc_result result = DFC_LOCAL;
    int code = E_IO;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].rc == rc) {
            result = rows[i].result;
            code = rows[i].code;
        }
    }
    return failure_set(err, result, code, "read '%s': %s", g->object, strerror(-rc));
}

int segments_read(void *segments, const struct dfc_plog_segment *g, void *to, size_t size,
                  uint64_t offset, struct dfc_error *err)
{
    const struct wanted w = {.key = g->object, .etag = "", .size = g->bytes, .sums = g->sums};
    const int rc = read_wanted(segments, &w, to, (struct span){offset, offset + size});
    return rc == 0 ? DFC_OK : told(rc, g, err);
}

int segments_read_object(struct segments *s, const struct segments_object *o, void *to, size_t size,
                         uint64_t offset)
{
    const struct wanted w = {.key = o->key, .etag = o->etag, .size = o->size};
    return read_wanted(s, &w, to, (struct span){offset, offset + size});
}

size_t segments_known(struct segments *s)
{
    pthread_mutex_lock(&s->lock);
    const size_t count = s->count;
    pthread_mutex_unlock(&s->lock);
    return count;
}

uint64_t segments_used(struct segments *s)
{
    return buffer_used(s->buffer);
}

/* ---- the bucket ---- */

/* Of a segment's data: its object has more behind them, so it is never read to its end.  A segment
 * never changes, and is found by name alone. */
int segments_fetch(void *tree, const struct entity *e, uint64_t offset, uint64_t length,
                   const struct dfc_sink *sink)
{
    struct tree *t = tree;
    const struct dfc_get_options range = {.offset = (int64_t)offset, .length = length};
    struct dfc_object_info *info;
    struct dfc_error err;
    if (e->sums == NULL)
        return tree_fetch(tree, e, offset, length, sink);
    const int rc = dfc_get_sink(t->client, t->bucket, e->key, sink, &range, &info, &err);
    if (rc != DFC_OK && strcmp(err.code, error_name(E_RANGE)) != 0)
        return errors_told(e->key, &err);
    const uint64_t size = rc == DFC_OK ? info->size : 0;
    if (rc == DFC_OK)
        dfc_object_info_free(info);
    if (size >= offset + length)
        return 0;
    log_error("segment is too short: restore the object", lstr("object", e->key));
    return -EIO;
}

/* ---- the whole ---- */

static int no_threads(struct error *err)
{
    return error_set(err, E_IO, "no thread could be started that moves data");
}

int segments_open(const struct segments_options *o, const struct data_store *store,
                  const char *scope, struct segments **out, struct error *err)
{
    struct segments *s = xcalloc(1, sizeof *s);
    struct cache_options cache = o->cache;
    int code = 0;
    pthread_mutex_init(&s->lock, NULL);
    cache.fill_bytes = o->buffer_bytes / TIERS_FILL_SHARE;
    if (cache.directories != NULL)
        code = cache_open(&cache, &s->tiers.cache, err);
    const struct buffer_options buffer = {.bytes = o->buffer_bytes -
                                                   (s->tiers.cache != NULL ? cache.fill_bytes : 0),
                                          .fetchers = o->fetchers};
    const struct data_store compared = {.context = &s->sums, .fetch = sums_fetch};
    s->readahead_bytes = o->readahead_bytes;
    s->ahead_bytes = buffer.bytes / SHARE_OF * (SHARE_OF - 1);
    s->tiers.store = *store;
    s->tiers.scope = xstrdup(scope);
    s->sums = (struct sums){.from = {.context = &s->tiers, .fetch = tiers_fetch},
                            .again = *store,
                            .differs = tiers_differ};
    if (code == 0) {
        s->buffer = buffer_new(&buffer, &compared);
        code = s->buffer != NULL ? 0 : no_threads(err);
    }
    if (code != 0)
        segments_close(s);
    else
        *out = s;
    return code;
}

void segments_close(struct segments *s)
{
    if (s == NULL)
        return;
    buffer_free(s->buffer);
    cache_close(s->tiers.cache);
    free(s->tiers.scope);
    while (s->newest != NULL)
        forget(s, s->newest);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
