/* A ring on this target: its lanes, the bytes that they may have, and its keeper, which acts if
 * this target leads the head.
 *
 *   push ──▶ room? ──▶ a lane, in turn of the mountpaths ──▶ acknowledged ──▶ rings_wake()
 *
 * A target may hold bytes_max / active targets.  A push beyond that is E_RING_FULL.  If it has the
 * policy `drop`, the next report asks the keeper to pass over the oldest samples that are in no
 * generation.  No target drops by itself: the keeper may seal these samples at that very moment.
 *
 * Locks: `step` (one step of the ring at a time; held while peers are asked) before `lock`; `lock`
 * (held while a mountpath's lanes are opened, and a lane is made) before those of lanes; `keep` is
 * taken alone and briefly. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cluster/documents/state.h"
#include "ring/keeper.h"
#include "target/ring/lane.h"
#include "target/ring/pace.h"
#include "target/ring/producers.h"

struct rings;
struct target;

enum { RING_ETAG_MAX = 96 };

struct pushing { /* a push that is being written */
    uint64_t producer, sequence;
    struct pushing *next;
};

struct ring {
    struct target *target;
    uint64_t bucket_id;
    pthread_mutex_t step;
    pthread_mutex_t lock;            /* of what follows */
    const struct mountpath_set *set; /* whose lanes are open; NULL: none were looked for */
    size_t lanes_count;
    struct lane **lanes;
    struct producers *producers;
    struct pushing *pushing;
    uint64_t reserved;                /* bytes of pushes under way */
    atomic_uint_least64_t seen_bytes; /* of the lanes, as ring_bytes_seen() has last found them */
    uint64_t turn;
    uint64_t share;       /* bytes that it may have, by the last push */
    uint64_t pressed;     /* bytes for which samples are to be dropped; 0: none */
    bool removed;         /* the bucket was destroyed */
    pthread_mutex_t keep; /* of what follows */
    struct ring_keeper *keeper;
    bool is_elsewhere; /* by its last step: another target is the keeper, or the ring is gone */
    char etag[RING_ETAG_MAX]; /* of the head that the keeper has loaded; "": there is none */
    /* rings.c's: */
    unsigned refs;
    bool running; /* a step */
    struct ring_pace pace;
    struct ring *next;
};

struct ring *ring_new(struct target *t, uint64_t bucket_id);
void ring_free(struct ring *r);

/* All of it or nothing.  Waits for the disk.  A push that was stored before has its old answer. */
int ring_push(struct ring *r, const struct cluster_state *s, const struct bucket *b,
              struct lane_push *push, struct push_done *done, struct error *err);
/* As lane_find(); *mp is open as long as *lane, a reference, is held.  E_GENERATION_GONE may be a
 * lost disk: ring_why_gone() tells. */
int ring_find(struct ring *r, const char *lane_name, uint64_t ordinal, uint64_t count,
              struct lane_range *out, struct lane **lane, struct error *err);

/* Is there room for a push of so many bytes now?  Does not wait: false, too, while another thread
 * has the lock.  Ask again after the ring's next step. */
bool ring_has_room(struct ring *r, uint64_t bytes);
/* Samples are to be dropped, or their files are leaving: the next step is wanted soon. */
bool ring_is_pressed(struct ring *r);
/* What this target's lanes have; the caller frees *out. */
int ring_reports(struct ring *r, struct ring_report **out, size_t *count, struct error *err);
/* What the keeper has answered to these reports. */
void ring_apply(struct ring *r, const struct ring_report *reports,
                const struct ring_answer *answers, size_t count);
/* Bytes of its lanes on this target. */
uint64_t ring_bytes(struct ring *r);
/* The same without waiting: an earlier number while another thread has the lock. */
uint64_t ring_bytes_seen(struct ring *r);
/* The bucket is gone: so are its lanes, and their files. */
int ring_remove(struct ring *r, struct error *err);
