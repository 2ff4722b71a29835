/* Room for what is read from backends: objects of buckets with a backend go, those that were used
 * longest ago first, where a mountpath is fuller than space_high, until it is at space_low.  What
 * goes can be read again; objects of buckets that own their data are never touched, nor those of
 * buckets with `lru` off, nor what was used within the bucket's lru_min_age.
 *
 * A thread of its own looks every evict_interval, and writes down when objects were used
 * (access.h); the job `lru` does the same at once, and down to space_low from wherever it is.
 * While mountpaths are not settled nothing goes. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "cluster/documents/state.h"
#include "target/store/last_use.h"
#include "target/store/object.h"
#include "target/disk/space.h"

struct evictor;

struct evictor_config {
    struct object_store *store; /* all outlive it */
    struct state_holder *state;
    struct last_use *last_use;
    const struct space_limits *limits;
    uint64_t interval_ms;
};

struct evict_count {
    uint64_t objects, bytes;
};

int evictor_new(const struct evictor_config *config, struct evictor **out, struct error *err);
void evictor_free(struct evictor *e); /* ends soon, whatever it is about */
/* So many bytes of one mountpath, whatever its fullness; as far as there are objects that may go.
 */
int evictor_make_room(struct evictor *e, struct mountpath *mp, uint64_t need_bytes,
                      const atomic_bool *stop, struct evict_count *count, struct error *err);
/* Every mountpath that is above space_low, in the caller's thread, which takes turns with the
 * other. Both add to *count. */
int evictor_run(struct evictor *e, const atomic_bool *stop, struct evict_count *count,
                struct error *err);
