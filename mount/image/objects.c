#include "mount/image/objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache.h"
#include "common/log.h"
#include "common/mem.h"

#define SHARE 4 /* of the memory: for metadata at most, for what the disk cache writes */
#define METADATA_FETCHERS 4
#define METADATA_LEAST (8u << 20)
#define REGION (64u << 20) /* bytes of the image whose readers share streams */
#define STREAMS 4          /* that share the memory */

/* --- the store -------------------------------------------------------------------------------- */

static int open_group(const struct objects *o, struct objects_bucket *b)
{
    struct error err = ERROR_INIT;
    struct group_reader_options options = o->group;
    options.client = o->client;
    options.bucket = b->tree.bucket;
    options.scope = b->tiers.scope;
    if (options.group == NULL)
        return 0;
    if (group_reader_open(&options, &b->tiers.store, &b->group, &err) != 0) {
        log_warn("the cache group cannot be read through", lerr(&err));
        return -EIO;
    }
    b->tiers.store = (struct data_store){.context = b->group, .fetch = group_reader_fetch};
    return 0;
}

static void bucket_free(struct objects_bucket *b)
{
    group_reader_close(b->group);
    free(b->tiers.scope);
    tree_close(&b->tree);
    free(b);
}

/* With the lock held.  A bucket is asked for once. */
static int bucket_of(struct objects *o, const char *name, struct objects_bucket **out)
{
    struct dfc_error err;
    for (size_t i = 0; i < o->bucket_count; i++) {
        *out = o->buckets[i];
        if (strcmp(o->buckets[i]->tree.bucket, name) == 0)
            return 0;
    }
    struct objects_bucket *b = xcalloc(1, sizeof *b);
    if (tree_open(&b->tree, o->client, name, "", &err) != DFC_OK) {
        log_warn("bucket of the image cannot be opened", lstr("bucket", name),
                 lstr("code", err.code), lstr("error", err.message));
        free(b);
        return -EIO;
    }
    b->tiers = (struct tiers){
        .cache = o->cache,
        .store = {.context = &b->tree, .fetch = tree_fetch},
        .scope = tree_scope(&b->tree),
    };
    if (open_group(o, b) != 0) {
        bucket_free(b);
        return -EIO;
    }
    o->buckets = xrealloc(o->buckets, (o->bucket_count + 1) * sizeof *o->buckets);
    o->buckets[o->bucket_count++] = b;
    *out = b;
    return 0;
}

/* An entity's key is BUCKET/KEY. */
static int fetch(void *context, const struct entity *e, uint64_t offset, uint64_t length,
                 const struct dfc_sink *sink)
{
    struct objects *o = context;
    struct objects_bucket *b = NULL;
    const char *slash = strchr(e->key, '/');
    _cleanup_free_ char *bucket = xprintf("%.*s", (int)(slash - e->key), e->key);
    pthread_mutex_lock(&o->lock);
    int rc = bucket_of(o, bucket, &b);
    pthread_mutex_unlock(&o->lock);
    if (rc != 0)
        return rc;
    const struct entity in_bucket = {.key = (char *)slash + 1,
                                     .etag = e->etag,
                                     .checksum = e->checksum,
                                     .size = e->size,
                                     .refs = 1};
    rc = tiers_fetch(&b->tiers, &in_bucket, offset, length, sink);
    if (rc != -ESTALE)
        return rc;
    log_error("object has been replaced or removed since the image was burned: burn it again",
              lstr("object", e->key), lstr("etag", e->etag));
    return -EIO;
}

/* --- entities --------------------------------------------------------------------------------- */

static struct entity *entity_make(const struct objects *o, uint32_t extent)
{
    const struct vdisc_extent *x = &vdisc_table_of(o->vdisc)->extents[extent];
    struct dfc_error err;
    _cleanup_free_ char *bucket = NULL, *key = NULL;
    if (vdisc_object(o->vdisc, extent, &bucket, &key, &err) != DFC_OK) {
        log_warn("object of the image cannot be read", lstr("address", x->address),
                 lstr("error", err.message));
        return NULL;
    }
    _cleanup_free_ char *whole = xprintf("%s/%s", bucket, key);
    return entity_new(whole, x->etag, x->checksum, vdisc_extent_size(x));
}

/* Borrowed: an entity stays as long as the image is open.  NULL: it is logged. */
static struct entity *entity_of(struct objects *o, uint32_t extent)
{
    struct entity *e = atomic_load_explicit(&o->entities[extent], memory_order_acquire);
    if (e != NULL)
        return e;
    pthread_mutex_lock(&o->lock);
    e = atomic_load_explicit(&o->entities[extent], memory_order_relaxed);
    if (e == NULL) {
        e = entity_make(o, extent);
        atomic_store_explicit(&o->entities[extent], e, memory_order_release);
    }
    pthread_mutex_unlock(&o->lock);
    return e;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Files that lie one behind another are one stream, whichever objects they are in. */
static struct span ahead_of(struct objects *o, uint64_t offset, uint64_t size)
{
    struct objects_reader *r = &o->readers[offset / REGION % OBJECTS_READERS];
    pthread_mutex_lock(&r->lock);
    struct span s = readahead_read(&r->readahead, offset, size, o->image_bytes, o->ahead_bytes);
    pthread_mutex_unlock(&r->lock);
    return s;
}

/* The first byte of an extent. */
static uint64_t begin_of(const struct objects *o, uint32_t extent)
{
    return vdisc_block_of(o->vdisc, extent) * ISO_BLOCK;
}

/* Asks for all objects of the span at once, and waits for none. */
static void request(struct objects *o, struct span s, bool is_wanted)
{
    static const struct span none = {0};
    const uint32_t count = vdisc_table_of(o->vdisc)->count;
    uint32_t extent =
        s.from < s.to ? vdisc_extent_of(o->vdisc, (uint32_t)(s.from / ISO_BLOCK)) : UINT32_MAX;
    for (; extent < count && begin_of(o, extent) < s.to; extent++) {
        const uint64_t begin = begin_of(o, extent);
        struct entity *e = entity_of(o, extent);
        if (e == NULL)
            continue;
        struct span part = {.from = s.from > begin ? s.from - begin : 0, .to = s.to - begin};
        if (part.to > e->size)
            part.to = e->size;
        if (part.from < part.to)
            buffer_request(o->data, e, is_wanted ? part : none, is_wanted ? none : part);
    }
}

/* Of one extent; what is behind the object is zero. */
static int read_extent(struct objects *o, uint32_t extent, uint64_t offset, size_t size,
                       const struct objects_read *r, char *to)
{
    struct entity *e = entity_of(o, extent);
    if (e == NULL)
        return -EIO;
    const uint64_t object = offset < e->size ? e->size - offset : 0;
    const size_t bytes = object < size ? (size_t)object : size;
    memset(to + bytes, 0, size - bytes);
    if (bytes == 0)
        return 0;
    const struct buffer_read what = {.entity = e,
                                     .offset = offset,
                                     .size = bytes,
                                     .interrupted = r->interrupted,
                                     .context = r->context};
    return buffer_read(r->metadata ? o->metadata : o->data, &what, to);
}

/* Are all bytes, which are some, of one extent? */
static bool is_of_one(const struct objects *o, uint64_t from, uint64_t to)
{
    return vdisc_extent_of(o->vdisc, (uint32_t)(from / ISO_BLOCK)) ==
           vdisc_extent_of(o->vdisc, (uint32_t)((to - 1) / ISO_BLOCK));
}

int objects_read(struct objects *o, const struct objects_read *r, void *to)
{
    const uint64_t end = r->offset + r->size;
    char *at = to;
    int rc = 0;
    if (!r->metadata && r->size > 0) {
        const struct span ahead = ahead_of(o, r->offset, r->size);
        if (!is_of_one(o, r->offset, end)) /* else the read itself asks */
            request(o, (struct span){r->offset, end}, true);
        if (ahead.from < ahead.to)
            request(o, ahead, false);
    }
    for (uint64_t offset = r->offset; rc == 0 && offset < end;) {
        const uint32_t extent = vdisc_extent_of(o->vdisc, (uint32_t)(offset / ISO_BLOCK));
        if (extent == UINT32_MAX)
            return -EIO;
        const uint64_t begin = begin_of(o, extent), next = begin_of(o, extent + 1);
        const size_t here = (size_t)((next < end ? next : end) - offset);
        rc = read_extent(o, extent, offset - begin, here, r, at);
        at += here;
        offset += here;
    }
    return rc;
}

uint64_t objects_used(const struct objects *o)
{
    return buffer_used(o->metadata) + buffer_used(o->data);
}

/* --- the whole -------------------------------------------------------------------------------- */

static int open_cache(struct objects *o, const struct objects_options *options,
                      struct dfc_error *err)
{
    struct error told = ERROR_INIT;
    const struct cache_options cache = {.directories = options->cache_directories,
                                        .bytes = options->cache_bytes,
                                        .fill_bytes = options->buffer_bytes / SHARE,
                                        .free_percent = options->cache_free_percent,
                                        .idle_ms = options->cache_idle_ms};
    if (options->cache_directories == NULL || cache_open(&cache, &o->cache, &told) == 0)
        return DFC_OK;
    *err = (struct dfc_error){.result = DFC_LOCAL, .code = "cache"};
    snprintf(err->message, sizeof err->message, "%s", told.message);
    return DFC_LOCAL;
}

/* The header needs no more memory than it has bytes. */
static uint64_t metadata_bytes(const struct vdisc *v, uint64_t bytes)
{
    const uint64_t header =
        vdisc_table_of(v)->count > 0 ? vdisc_extent_size(&vdisc_table_of(v)->extents[0]) : 0;
    const uint64_t wanted = header + METADATA_LEAST;
    return wanted < bytes / SHARE ? wanted : bytes / SHARE;
}

int objects_open(struct objects *o, const struct objects_options *options, const struct vdisc *v,
                 struct dfc_client *client, struct dfc_error *err)
{
    const struct data_store store = {.context = o, .fetch = fetch};
    *o = (struct objects){.vdisc = v,
                          .client = client,
                          .group = options->group,
                          .image_bytes = vdisc_table_size(vdisc_table_of(v))};
    pthread_mutex_init(&o->lock, NULL);
    for (size_t i = 0; i < OBJECTS_READERS; i++)
        pthread_mutex_init(&o->readers[i].lock, NULL);
    o->entities = xcalloc((size_t)vdisc_table_of(v)->count + 1, sizeof *o->entities);
    int rc = open_cache(o, options, err);
    if (rc != DFC_OK)
        return rc;
    const uint64_t fills = o->cache != NULL ? options->buffer_bytes / SHARE : 0;
    const uint64_t metadata = metadata_bytes(v, options->buffer_bytes);
    const struct buffer_options of_metadata = {.bytes = metadata, .fetchers = METADATA_FETCHERS};
    const struct buffer_options of_data = {.bytes = options->buffer_bytes - fills - metadata,
                                           .fetchers = options->fetchers};
    o->metadata = buffer_new(&of_metadata, &store);
    o->data = buffer_new(&of_data, &store);
    if (o->metadata != NULL && o->data != NULL) {
        buffer_readers(o->data, STREAMS);
        const uint64_t share = buffer_share(o->data);
        o->ahead_bytes = share < options->readahead_bytes ? share : options->readahead_bytes;
        return DFC_OK;
    }
    *err = (struct dfc_error){.result = DFC_LOCAL};
    snprintf(err->message, sizeof err->message, "no thread could be started that moves data");
    return DFC_LOCAL;
}

void objects_close(struct objects *o)
{
    buffer_free(o->metadata);
    buffer_free(o->data);
    cache_close(o->cache);
    for (size_t i = 0; i < o->bucket_count; i++)
        bucket_free(o->buckets[i]);
    free(o->buckets);
    for (uint32_t i = 0; o->entities != NULL && i < vdisc_table_of(o->vdisc)->count; i++)
        entity_unref(atomic_load(&o->entities[i]));
    free(o->entities);
    for (size_t i = 0; i < OBJECTS_READERS; i++)
        pthread_mutex_destroy(&o->readers[i].lock);
    pthread_mutex_destroy(&o->lock);
}
