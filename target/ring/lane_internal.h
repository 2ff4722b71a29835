/* What the files of a lane (lane.h) share. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/head.h"

struct lane_place;
struct mountpath;
struct mountpath_set;

/* In `offsets`, a sample that is damaged: where the one before it ends. */
#define DAMAGED (UINT64_C(1) << 63)

struct segment {
    uint64_t first, size; /* size: where its last sample ends */
    size_t count, room;
    uint64_t *offsets;    /* where each sample begins */
    uint64_t released_ms; /* since when nobody needs it; 0: somebody may */
};

struct lane {
    char name[RING_LANE_MAX];
    char *dir;
    struct mountpath *mp;
    pthread_mutex_t append;
    pthread_mutex_t lock;
    pthread_cond_t synced; /* of `syncing` */
    unsigned refs;
    const struct mountpath_set *set;
    int fd; /* of the last segment while the lane is open, or -1 */
    bool closed, syncing, failed;
    uint64_t written, count, on_disk;
    size_t segments_count;
    struct segment *segments; /* ascending */
    uint64_t released, taken; /* by the last answers of the keeper */
    size_t holes_count;
    struct ring_range *holes; /* samples that are damaged, or were dropped; ascending */
};

struct lane *lane_new(const struct lane_place *place, const char *dir);
char *lane_segment_path(const struct lane *l, uint64_t first);
/* With the lock. */
struct segment *lane_add_segment(struct lane *l, uint64_t first);
void segment_add_sample(struct segment *s, uint64_t offset);
void lane_add_hole(struct lane *l, uint64_t from, uint64_t to);
