/* What the phases of one task share: who it is, what it may use, how far it has come. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "sort/rows/arrangement.h"
#include "sort/base/env.h"
#include "sort/spec/keymap.h"
#include "sort/base/links.h"
#include "sort/base/notes.h"
#include "sort/spec/order.h"
#include "sort/spec/spec.h"
#include "sort/task/task_types.h"

/* Counters that sort_task_status() reads while they grow. */
struct sort_progress {
    atomic_int phase; /* enum sort_phase */
    atomic_ullong shards_done, shards_total, shards_missing, records, record_bytes, spilled_bytes;
    atomic_ullong rows_in, rows_out;
    atomic_ullong built, to_build, records_built;
    atomic_ullong bytes_done, bytes_total, bytes_local, bytes_remote;
    atomic_ullong redone_inputs, redone_shards, redone_bytes;
    atomic_ullong extract_ms, merge_ms, create_ms;
};

/* The last target's plan, when it is made. */
struct sort_figures {
    uint64_t shards;
    uint64_t records;
    uint64_t bytes;
    uint64_t moved;
    uint64_t moved_hrw;
    uint64_t moved_locality;
};

/* How the memory of the tables is shared out, in parts of the whole. */
struct sort_memory {
    uint64_t rows;       /* rows, before they become runs */
    uint64_t contents;   /* decoded shards, before they go to work files */
    uint64_t index;      /* where the records lie */
    uint64_t book;       /* the orders that this target builds */
    uint64_t cutting;    /* records of the output shard that is being cut */
    uint64_t repeats;    /* record names of that shard */
    uint64_t scanning;   /* for each thread that reads a shard: its members */
    uint64_t key_map;    /* it cannot spill either */
    uint64_t one_record; /* the pieces of a single record: these cannot spill */
};

struct sort_context {
    const struct sort_env *env;
    const struct sort_spec *spec;
    char *job_id;
    uint64_t job; /* hash of the id: in every stream */
    unsigned self;
    unsigned participants; /* those included that the job goes on without */
    uint64_t attempt;
    uint64_t salt;   /* of the arrangement */
    uint64_t inputs; /* stamp of this target's, when they are pinned */
    struct arrangement *arrangement;
    struct sort_order order;
    struct keymap *map; /* the request's external key map, once it has been read; or NULL */
    struct sort_memory memory;
    uint64_t window_max;            /* of format_input */
    unsigned formats;               /* of format_input */
    const struct sort_watch *watch; /* or NULL */
    unsigned open_shards;
    unsigned extract_threads;
    unsigned create_threads;
    struct links *links;
    struct sort_damage *damage;
    struct notes notes;
    struct sort_progress progress;
};

/* What another target was to get of this one's inputs is damaged.  It only sees its stream cut, and
 * has all begin again; then this target says why. */
struct sort_damage {
    pthread_mutex_t lock;
    struct error first;
};

/* Stops the task, too, where `code` tells of damage. */
void sort_damage_note(const struct sort_context *c, int code, const struct error *why);
int sort_damage_check(const struct sort_context *c, struct error *err);

/* The node's metrics (sort_records_total, sort_bytes_total) of one phase. */
void sort_count(const char *phase, uint64_t records, uint64_t bytes);

static inline void progress_add(atomic_ullong *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline uint64_t progress_get(const atomic_ullong *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* For messages. */
static inline const char *sort_target_name(const struct sort_context *c, unsigned number)
{
    return c->env->target_name(c->env->ctx, number);
}

/* How many targets the job goes on without. */
static inline unsigned sort_without(const struct sort_context *c)
{
    return c->participants - c->arrangement->count;
}

static inline unsigned sort_last_target(const struct sort_context *c)
{
    return arrangement_last(c->arrangement);
}
