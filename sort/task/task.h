/* One target's part of one SortDataset job: the three phases, from pinned input shards to hidden
 * output shards.
 *
 *   extract   every target scans the headers of its own shards (parallel), makes rows, sorts them
 *   merge     ceil(log2 N) rounds of the salted arrangement, each a linear merge while receiving;
 *             a target that is odd in a round (counting from one) sends to the next one and is
 *             done; an unpaired last one passes on.  All rounds of a target are one pull-based
 *             merge: own run + the stream of each round, written to the next target as it comes
 *   create    the last target cuts the order into output shards, gives each to the target that
 *             costs the network least (rows/place.h) and sends everyone its orders; each builds
 *             its shards (parallel): local records by pread, remote ones from one ordered stream
 *             per (shard, source)
 *
 * sort_task_run() does all of it in the calling thread (plus threads of its own) and returns when
 * this target has nothing left to do: its outputs are stored, hidden.  Making them visible, or
 * removing them, is the host's part (the job's commit or abort).
 *
 * Incoming streams are handed in from the host's network threads at any time after
 * sort_task_new().  Every stream's content is checked for form (it comes from a network) and for
 * completeness (counts and a checksum at its end).
 *
 * Stopping: sort_task_stop() from any thread makes every wait end; run() returns E_ABORTED soon.
 *
 * Where a peer was lost, all go through the phases again: a further attempt, in which those that
 * were not lost keep what they have extracted and which output shards they have built
 * (sort/task/resume.h). Where one stays away, the job may go on without it: then its shards are
 * others' (env.h), who extract them besides. sort_task_give_way() ends run() for it, as soon as the
 * extracting at hand is done, and sort_task_again() makes the task ready to run once more. */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/template.h"
#include "io/bpipe.h"
#include "sort/base/env.h"
#include "sort/spec/spec.h"

struct sort_task;

#define SORT_MEMORY_MIN (1024 * 1024)
#define SORT_THREADS_MAX 64 /* of a phase, whoever asks for more */

/* Somebody who looks on.  Each may end the task by an error. */
struct group_record;
struct sort_watch {
    void *ctx;
    /* A record was read; its pieces lie in the tar that begins at byte `at` of the file.  By the
     * threads that extract; positions of one shard ascend. */
    int (*read)(void *ctx, uint32_t shard, uint32_t position, const struct group_record *r, int fd,
                uint64_t at, struct error *err);
    /* The last target's order: this is the next record of that output shard.  Shards are numbered
     * by their owner. */
    int (*ordered)(void *ctx, const char *output, const char *name, size_t name_len, uint32_t shard,
                   uint32_t position, struct error *err);
    /* The last target, for each template that is used: its first `count` names are the output
     * shards. */
    int (*used)(void *ctx, const struct name_template *t, uint64_t count, struct error *err);
};

struct sort_task_config {
    const char *job_id;
    const struct sort_spec *spec; /* outlives the task */
    const struct sort_env *env;   /* outlives the task */
    unsigned self;                /* this target's number */
    unsigned participants;
    const bool *absent;       /* by number: the job goes on without them; NULL: all take part */
    uint64_t attempt;         /* of the job, from 0 */
    uint64_t salt;            /* of the arrangement; the primary's */
    uint64_t memory_bytes;    /* budget of the tables before they spill to work files; the
                               * request may lower it, not below SORT_MEMORY_MIN */
    uint64_t key_map_bytes;   /* limit of an external key map's memory */
    uint64_t window_max;      /* of format_input, for each thread that reads shards */
    unsigned extract_threads; /* what the target allows; the request may lower it */
    unsigned create_threads;
    unsigned open_shards; /* files that are kept open; 0: a share of the process's limit */
    const struct sort_watch *watch; /* or NULL */
};

enum sort_phase { SORT_QUEUED, SORT_EXTRACTING, SORT_MERGING, SORT_CREATING, SORT_DONE };

int sort_task_new(const struct sort_task_config *config, struct sort_task **out, struct error *err);
int sort_task_run(struct sort_task *t, struct error *err);
void sort_task_stop(struct sort_task *t);
/* True: run() has been stopped; false: it ends by itself when all shards are extracted. */
bool sort_task_give_way(struct sort_task *t);
/* run() has returned, or was not called; streams of the attempt before are ended.  Of those who
 * take part there may be fewer than before, never more: what they had the others take over. */
int sort_task_again(struct sort_task *t, uint64_t attempt, const bool *absent, struct error *err);
void sort_task_free(struct sort_task *t); /* run() has returned, streams are ended */
DEFINE_CLEANUP(struct sort_task, sort_task_free);

/* A stream from peer `from` has begun (takes a reference of the pipe).  E_JOB_STATE where the
 * arrangement does not foresee it, or it came twice. */
int sort_task_receive(struct sort_task *t, unsigned from, enum sort_channel channel,
                      struct bpipe *pipe, struct error *err);

/* A peer asks for records of this target's shards: a source of bytes that is pulled, never waits
 * for anybody (so that no two targets can wait for each other), and may outlive run(). */
struct sort_records;
int sort_task_records(struct sort_task *t, const void *request, size_t len,
                      struct sort_records **out, struct error *err);
int64_t sort_records_length(const struct sort_records *r); /* total bytes; -1: not known */
/* 1..max bytes, 0 at the end, or an error code. */
ssize_t sort_records_read(struct sort_records *r, void *out, size_t max, struct error *err);
bool sort_records_wanted(const struct sort_records *r); /* until the task is stopped */
void sort_records_free(struct sort_records *r);

enum sort_phase sort_task_phase(const struct sort_task *t);
const char *sort_phase_name(enum sort_phase p); /* "queued", "extracting", ... */
/* {"phase",
 *  "extract": {"shards": {"done", "total"}, "records", "bytes", "spilled_bytes"},
 *  "merge": {"rows_in", "rows_out"},
 *  "create": {"shards": {"done", "total"}, "records",
 *             "bytes": {"done", "total", "local", "remote"}},
 *  "plan": {"shards", "records", "bytes", "moved_bytes", "moved_bytes_hrw",
 *           "moved_bytes_locality"} (last target only, when it is made),
 *  "redone": {"inputs", "shards", "bytes"} (input shards extracted, output shards built and bytes
 * of them written a second time, or thrown away), "warnings": […], "seconds": {"extract", "merge",
 * "create"}} */
json_t *sort_task_status(const struct sort_task *t);
