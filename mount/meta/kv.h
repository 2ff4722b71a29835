/* Reads and commits over ordered bytes: what all engines share that keep one table of encoded keys.
 *
 * An engine brings four functions, and calls kv_read(), kv_commit() and the others within a
 * transaction or a lock of its own.  A stored value is its stamp, 8 bytes little-endian, and its
 * data. */
#pragma once

#include "mount/meta/meta.h"

struct kv_bytes {
    const uint8_t *data;
    size_t size;
};

/* Bytes that get and next give out hold until the next call of any. */
struct kv_ops {
    int (*get)(void *context, struct kv_bytes key, bool *found, struct kv_bytes *value,
               struct error *err);
    /* The first key that is greater than `key`. */
    int (*next)(void *context, struct kv_bytes key, bool *found, struct kv_bytes *next,
                struct kv_bytes *value, struct error *err);
    int (*put)(void *context, struct kv_bytes key, struct kv_bytes value, struct error *err);
    int (*remove)(void *context, struct kv_bytes key, struct error *err);
};

struct kv {
    const struct kv_ops *ops;
    void *context;
};

int kv_read(const struct kv *kv, struct meta_read *r, struct error *err);
int kv_queue(const struct kv *kv, struct arena *arena, struct meta_item *item, uint64_t until,
             struct error *err);
int kv_snapshot(const struct kv *kv, meta_visit *visit, void *context, struct error *err);
/* E_PRECONDITION: nothing was changed.  Another error: undo what was changed. */
int kv_commit(const struct kv *kv, struct meta_commit *c, uint64_t stamp, struct error *err);
