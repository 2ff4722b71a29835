/* The buckets whose pieces a member serves: each with its store, and the disk cache before it.
 *
 *     tiers: disk cache -> earlier owner (map.h) -> the cluster
 *
 * A bucket is added when a reader first asks for it, and stays.  The scope says which bucket of
 * this name it is: another one has another scope, which is compared with the cluster.  Any
 * thread. */
#pragma once

#include "api/dfc.h"
#include "cache/cache.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "mount/data/tiers.h"
#include "mount/group/members.h"
#include "mount/group/peers.h"

struct served;
struct served_bucket;

struct served_options { /* borrowed */
    struct dfc_client *client;
    struct cache *cache;
    struct group_members *members;
    struct group_peers *peers;
    const char *self; /* id of this member */
};

struct served *served_new(const struct served_options *options);
void served_free(struct served *s); /* NULL is fine */
DEFINE_CLEANUP(struct served, served_free);

/* May ask the cluster.  E_BUCKET_NOT_FOUND: the cluster's bucket of this name is another one;
 * E_OVERLOAD: there are too many; else the cluster's error. */
int served_find(struct served *s, const char *bucket, const char *scope, struct served_bucket **out,
                struct error *err);
struct tiers *served_tiers(struct served_bucket *b);
