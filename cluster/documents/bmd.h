/* The buckets ("bucket metadata"): lookup, JSON form, and the one way in which they change. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/base/document.h"
#include "cluster/documents/bucket_texts.h"
#include "cluster/props/bucket_props.h"
#include "common/arena.h"
#include "common/error.h"

struct bucket {
    uint64_t id;      /* never used twice in the life of the cluster */
    const char *name; /* [a-zA-Z0-9][a-zA-Z0-9_.-]{0,62} */
    int64_t created_ms;
    const char *owner; /* id of the user who has all rights on it; NULL: none */
    struct bucket_props props;
    struct bucket_texts texts;
    /* How many of the owners, in rank, have what was there when `copies` was raised: all, but until
     * a repair has filled the others.  `raised`: the bmd's version of that. */
    uint32_t filled;
    uint64_t raised;
    /* From how many `copies` was lowered, where targets may still have what they do not own any
     * more, or 0; `lowered`: the bmd's version of that (cluster/placement/copies_reduce.h). */
    uint32_t lowered_from;
    uint64_t lowered;
    /* The term in which it was closed for writes, or 0: it is open in every other term
     * (state_bucket_is_closed()). */
    uint64_t closed;
};

struct bmd {
    uint64_t version;
    size_t count;
    struct bucket *buckets; /* sorted by name */
    struct document *memory;
};

const struct bucket *bmd_bucket(const struct bmd *b, const char *name); /* or NULL */
const struct bucket *bmd_bucket_by_id(const struct bmd *b, uint64_t id);
bool bmd_has_quota(const struct bmd *b, uint64_t id); /* is there such a bucket, with a quota? */
/* May targets have copies of it that they do not own any more (cluster/placement/copies_reduce.h)?
 */
static inline bool bucket_has_surplus(const struct bucket *b)
{
    return b->lowered_from > 0;
}
/* Does it keep more than one copy of each object, or may there be more than it keeps?  Then its
 * objects are written and read through the owner that acts. */
bool bucket_has_copies(const struct bucket *b);
/* Does any bucket? */
bool bmd_has_copies(const struct bmd *b);

/* For commands: a new document that differs from `old` in one item.  x_with() puts an item in
 * (replacing the one of its name), x_without() leaves one out; both set `next` to a document with
 * version + 1, which the caller owns. */
/* x_changed() does it for many items; it returns a dropped name that `old` lacks, or NULL. */
const char *bmd_changed(const struct bmd *old, const struct document_change *c, struct bmd *next);
void bmd_with(const struct bmd *old, const struct bucket *b, struct bmd *next);
void bmd_without(const struct bmd *old, const char *name, struct bmd *next);
/* The bucket `name` with another name, and all else as it was. */
void bmd_renamed(const struct bmd *old, const char *name, const char *new_name, struct bmd *next);

json_t *bucket_to_json(const struct bucket *b);
int bucket_from_json(json_t *doc, const char *path, struct arena *a, struct bucket *out,
                     struct error *err);
json_t *bmd_to_json(const struct bmd *b);
int bmd_from_json(json_t *doc, struct bmd *out, struct error *err);
