/* What nobody waits for, in a thread of its own: removing buckets that were destroyed, with their
 * entries in the indexes, and tombstones that have outlived tombstone_ttl; flushing the file
 * systems on which something was written without sync, so that a loss of power leaves little to be
 * checked (life.h); and files that were abandoned in tmp/.
 *
 * A bucket is dead when its id is below the state's next_bucket_id and the state does not have it.
 * Ids are never used twice, so a dead one stays dead. */
#pragma once

#include "cluster/documents/state.h"
#include "target/store/object.h"

struct sweeper;

/* Which tombstones stay, however old: an owner may lack them (copies_keep_name()).  Any thread. */
struct sweep_keeps {
    bool (*all)(void *arg, const struct cluster_state *s);         /* NULL: none, by this */
    bool (*name)(void *arg, uint64_t bucket_id, const char *name); /* NULL: none */
    void *arg;
};

struct sweeper_config {
    struct object_store *store; /* outlives it */
    struct state_holder *state; /* outlives it */
    uint64_t interval_ms;       /* between looks for old tombstones */
    uint64_t tombstone_ttl_ms;
    uint64_t flush_ms;     /* between flushes */
    uint64_t abandoned_ms; /* age of a file in tmp/ that nobody writes any more */
    struct sweep_keeps keeps;
};

/* What was removed. */
struct sweep_count {
    uint64_t buckets; /* their directories, one on each mountpath */
    uint64_t tombstones;
    uint64_t files;
};

int sweeper_new(const struct sweeper_config *config, struct sweeper **out, struct error *err);
/* Buckets may have been destroyed: look now.  Any thread; does not wait. */
void sweeper_wake(struct sweeper *s);
/* Everything that is due, now and in the caller's thread, which takes turns with the other. */
int sweeper_clean(struct sweeper *s, const atomic_bool *stop, struct sweep_count *count,
                  struct error *err);
void sweeper_free(struct sweeper *s); /* ends soon, whatever it is about */

/* One look, in the caller's thread: what the thread does, and the tests.  They add to *count. */
int sweep_dead_buckets(struct object_store *store, const struct cluster_state *s,
                       const atomic_bool *stop, struct sweep_count *count, struct error *err);
/* On every mountpath, whatever fails on others; the first error. */
int sweep_flush(struct object_store *store, const atomic_bool *stop, struct error *err);
/* keeps->all is not asked. */
int sweep_tombstones(struct object_store *store, int64_t older_than_ms,
                     const struct sweep_keeps *keeps, const atomic_bool *stop,
                     struct sweep_count *count, struct error *err);
int sweep_abandoned(struct object_store *store, int64_t older_than_ms, const atomic_bool *stop,
                    struct sweep_count *count, struct error *err);
