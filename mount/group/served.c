#include "mount/group/served.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/metrics.h"
#include "mount/bucket/tree.h"

#define BUCKETS_MOST 4096

struct served_bucket {
    struct served_bucket *next;
    struct served *served;
    struct tree tree;
    struct tiers tiers;
};

struct served {
    struct served_options options;
    metric_t *pulled, *fetched;
    pthread_mutex_t lock; /* of what follows */
    size_t count;
    struct served_bucket *buckets;
};

struct served *served_new(const struct served_options *options)
{
    struct served *s = xcalloc(1, sizeof *s);
    s->options = *options;
    s->pulled = metric_get(M_group_pulled_bytes_total, NULL);
    s->fetched = metric_get(M_group_fetched_bytes_total, NULL);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void bucket_free(struct served_bucket *b)
{
    if (b == NULL)
        return;
    tree_close(&b->tree);
    free(b->tiers.scope);
    free(b);
}

void served_free(struct served *s)
{
    if (s == NULL)
        return;
    while (s->buckets != NULL) {
        struct served_bucket *next = s->buckets->next;
        bucket_free(s->buckets);
        s->buckets = next;
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

struct tiers *served_tiers(struct served_bucket *b)
{
    return &b->tiers;
}

/* ---- below the disk cache ---- */

static int ask_earlier(struct served_bucket *b, const struct entity *e, uint64_t offset,
                       uint64_t length, struct buf *data)
{
    const struct served_options *o = &b->served->options;
    const struct group_request q = {
        .scope = b->tiers.scope,
        .bucket = b->tree.bucket,
        .object = e->key,
        .etag = e->etag,
        .checksum = e->checksum,
        .size = e->size,
        .offset = offset,
        .length = length,
        .how = GROUP_CACHED,
    };
    const struct piece_id piece = group_request_piece(&q);
    struct group_map *map = group_members_map(o->members);
    const struct group_member *had = group_map_earlier(map, &piece, o->self);
    int rc = had != NULL ? group_peers_ask(o->peers, had, &q, data, NULL) : E_NOT_FOUND;
    group_map_unref(map);
    return rc;
}

/* Of one piece. */
static int bucket_fetch(void *context, const struct entity *e, uint64_t offset, uint64_t length,
                        const struct dfc_sink *sink)
{
    struct served_bucket *b = context;
    _cleanup_(buf_done)
    struct buf data = BUF_INIT;
    if (length > 0 && ask_earlier(b, e, offset, length, &data) == 0) {
        metric_add(b->served->pulled, length);
        return sink->write(sink->context, data.data, data.len) == 0 ? 0 : -errno;
    }
    int rc = tree_fetch(&b->tree, e, offset, length, sink);
    if (rc == 0)
        metric_add(b->served->fetched, length);
    return rc;
}

/* ---- which bucket ---- */

static struct served_bucket *known(struct served *s, const char *bucket, const char *scope)
{
    struct served_bucket *b = s->buckets;
    while (b != NULL && (strcmp(b->tree.bucket, bucket) != 0 || strcmp(b->tiers.scope, scope) != 0))
        b = b->next;
    return b;
}

/* As the cluster has it now. */
static int bucket_open(struct served *s, const char *bucket, struct served_bucket **out,
                       struct error *err)
{
    struct dfc_error told;
    struct served_bucket *b = xcalloc(1, sizeof *b);
    if (tree_open(&b->tree, s->options.client, bucket, "", &told) != DFC_OK) {
        int code = error_from_name(told.code);
        free(b);
        return error_set(err, code != 0 ? code : E_NET, "bucket '%s': %s", bucket, told.message);
    }
    b->served = s;
    b->tiers = (struct tiers){
        .cache = s->options.cache,
        .store = {.context = b, .fetch = bucket_fetch},
        .scope = tree_scope(&b->tree),
    };
    *out = b;
    return 0;
}

/* Of two that open one bucket at a time, one stays; the lock is held. */
static int keep(struct served *s, struct served_bucket *b, struct served_bucket **out,
                struct error *err)
{
    *out = known(s, b->tree.bucket, b->tiers.scope);
    if (*out != NULL) {
        bucket_free(b);
        return 0;
    }
    if (s->count == BUCKETS_MOST) {
        bucket_free(b);
        return error_set(err, E_OVERLOAD, "this member serves %d buckets, which is the limit",
                         BUCKETS_MOST);
    }
    b->next = s->buckets;
    s->buckets = b;
    s->count++;
    *out = b;
    return 0;
}

int served_find(struct served *s, const char *bucket, const char *scope, struct served_bucket **out,
                struct error *err)
{
    struct served_bucket *b;
    pthread_mutex_lock(&s->lock);
    *out = known(s, bucket, scope);
    pthread_mutex_unlock(&s->lock);
    if (*out != NULL)
        return 0;
    int rc = bucket_open(s, bucket, &b, err);
    if (rc != 0)
        return rc;
    if (strcmp(b->tiers.scope, scope) != 0) {
        bucket_free(b);
        return error_set(err, E_BUCKET_NOT_FOUND, "bucket '%s' is another one than '%s'", bucket,
                         scope);
    }
    pthread_mutex_lock(&s->lock);
    rc = keep(s, b, out, err);
    pthread_mutex_unlock(&s->lock);
    return rc;
}
