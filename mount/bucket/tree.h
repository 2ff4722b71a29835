/* A bucket, or what is below a prefix of it, as a tree of directories and files.
 *
 * Every function asks the cluster and returns 0 or -errno (errors.h).  Any thread may call; a
 * listing belongs to one thread at a time. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/dfc.h"
#include "common/cleanup.h"
#include "mount/bucket/entries.h"
#include "mount/data/entity.h"

struct tree {
    struct dfc_client *client;
    char *bucket;
    char *prefix;                      /* of the root: "" or ends with '/' */
    uint64_t bucket_id;                /* inode numbers depend on it */
    int64_t bucket_made_ms;            /* with it the id is no other bucket's of any cluster */
    atomic_uint_fast64_t unguarded_ms; /* when the cluster had no access control; 0: unknown */
};

/* The bucket must exist.  bucket and prefix are copied. */
int tree_open(struct tree *t, struct dfc_client *client, const char *bucket, const char *prefix,
              struct dfc_error *err);
void tree_close(struct tree *t);

/* What `name` is in the directory whose prefix is given: an entry, the caller's to end.  A name is
 * asked for without a list of its directory. */
int tree_lookup(struct tree *t, const char *prefix, const char *name, struct entry *out);
/* Is there an object whose name begins so?  Targets that do not answer are left out of the list, so
 * that the objects of the others stay readable: then UNKNOWN may take the place of NO. */
enum tree_begins { TREE_BEGINS_NO, TREE_BEGINS_YES, TREE_BEGINS_UNKNOWN };
int tree_begins(struct tree *t, const char *prefix, enum tree_begins *found);
int tree_head(struct tree *t, const char *key, struct dfc_object_info **info);
/* May the user write the object?  EACCES: no.  0: yes, or it is not known, and the write tells. */
int tree_may_write(struct tree *t, const char *key);
/* What identifies the version: the version, without one the entity tag. */
const char *tree_version(const struct dfc_object_info *info);
struct entity *tree_entity(const char *key, const struct dfc_object_info *info);
/* Of names in caches: no other bucket of any cluster has it.  malloc'ed. */
char *tree_scope(const struct tree *t);
/* As a number that is the same on every machine and after every mount. */
uint64_t tree_inode(const struct tree *t, const char *key);

/* For struct data_store; context is the tree. */
int tree_fetch(void *tree, const struct entity *e, uint64_t offset, uint64_t length,
               const struct dfc_sink *sink);

struct tree_room {
    uint64_t total_bytes, available_bytes;
};
int tree_room(struct tree *t, struct tree_room *room); /* the cluster's */

/* ---- a directory, entry by entry, in no order; page by page, in constant memory ---- */

struct listing;

int listing_open(struct tree *t, const char *prefix, struct listing **out);
/* 1 and an entry, the caller's to end; 0 at the end; -errno also where the list is incomplete. */
int listing_next(struct listing *l, struct entry *out);
void listing_close(struct listing *l);
DEFINE_CLEANUP(struct listing, listing_close);
