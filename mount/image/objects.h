/* The objects of an image as entities, and their bytes through buffers, the disk cache and the
 * cache group. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "mount/bucket/tree.h"
#include "mount/data/buffer.h"
#include "mount/data/tiers.h"
#include "mount/group/reader.h"
#include "vdisc/client/image.h"

#define OBJECTS_READERS 64

struct objects_options {
    uint64_t buffer_bytes;
    uint64_t readahead_bytes;
    unsigned fetchers;
    const char *cache_directories;
    uint64_t cache_bytes, cache_free_percent, cache_idle_ms;
    struct group_reader_options group; /* its group, NULL: none; key file and times: they stay */
};

/* A bucket of the image, and how the disk cache knows its objects: as a mounted bucket does. */
struct objects_bucket {
    struct tree tree;
    struct tiers tiers;
    struct group_reader *group; /* NULL: none */
};

/* Who reads a region of the image in order. */
struct objects_reader {
    pthread_mutex_t lock;
    struct readahead readahead; /* of the whole image */
};

struct objects {
    const struct vdisc *vdisc;
    struct dfc_client *client;
    struct cache *cache; /* NULL: there is no disk cache */
    struct group_reader_options group;
    struct buffer *metadata, *data;
    uint64_t image_bytes;
    uint64_t ahead_bytes;               /* the window of a reader */
    pthread_mutex_t lock;               /* buckets, and whoever sets an entity */
    _Atomic(struct entity *) *entities; /* of each extent; NULL: not asked for yet */
    struct objects_bucket **buckets;
    size_t bucket_count;
    struct objects_reader readers[OBJECTS_READERS];
};

int objects_open(struct objects *o, const struct objects_options *options, const struct vdisc *v,
                 struct dfc_client *client, struct dfc_error *err);
void objects_close(struct objects *o);

struct objects_read {
    uint64_t offset; /* in the image */
    size_t size;
    bool metadata;
    bool (*interrupted)(void *context);
    void *context;
};
/* Bytes of the image, all of them: 0 or -errno. */
int objects_read(struct objects *o, const struct objects_read *r, void *to);
uint64_t objects_used(const struct objects *o); /* bytes of both buffers now */
